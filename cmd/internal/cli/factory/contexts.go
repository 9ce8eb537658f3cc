package factory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
)

// Context is a named cluster in the configuration file. Contexts are a list, not a map, because the reader
// lower-cases map keys.
type Context struct {
	Name            string   `mapstructure:"name" yaml:"name"`
	BootstrapServer string   `mapstructure:"bootstrapServer" yaml:"bootstrapServer,omitempty"`
	ZooKeeper       string   `mapstructure:"zookeeper" yaml:"zookeeper,omitempty"`
	CommandConfig   string   `mapstructure:"commandConfig" yaml:"commandConfig,omitempty"`
	Properties      []string `mapstructure:"properties" yaml:"properties,omitempty"`
	ReadOnly        bool     `mapstructure:"readOnly" yaml:"readOnly,omitempty"`
	ClusterID       string   `mapstructure:"clusterId" yaml:"clusterId,omitempty"`
}

// File is the configuration file.
type File struct {
	Current  string    `mapstructure:"current" yaml:"current,omitempty"`
	Contexts []Context `mapstructure:"contexts" yaml:"contexts,omitempty"`
}

// Find returns the named context.
func (f *File) Find(name string) (*Context, error) {
	names := make([]string, len(f.Contexts))
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i], nil
		}
		names[i] = f.Contexts[i].Name
	}
	e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("context %q does not exist", name), Hint: "kctl context list shows them, kctl context add makes one"}
	if near, ok := plan.Nearest(name, names); ok {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}

// configPaths are the places of the file, best first: KCTL_CONFIG, XDG, /etc.
func (f *Factory) configPaths() []string {
	if p := f.Getenv("KCTL_CONFIG"); p != "" {
		return []string{p}
	}
	return []string{filepath.Join(f.xdg("XDG_CONFIG_HOME", ".config"), "kctl", "config.yaml"), "/etc/kctl/config.yaml"}
}

func (f *Factory) xdg(variable, fallback string) string {
	if p := f.Getenv(variable); filepath.IsAbs(p) {
		return p
	}
	home := f.Getenv("HOME")
	if home == "" {
		home = "."
	}
	return filepath.Join(home, fallback)
}

// ConfigPath is where changes of contexts are written.
func (f *Factory) ConfigPath() string { return f.configPaths()[0] }

// ReadFile reads the configuration; a missing file is an empty one. Unknown keys are errors.
func (f *Factory) ReadFile() (*File, error) {
	file, _, err := f.readFile()
	return file, err
}

// readFile tells also where it was read; empty for nowhere.
func (f *Factory) readFile() (*File, string, error) {
	for _, path := range f.configPaths() {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		v := viper.NewWithOptions(viper.KeyDelimiter("::"))
		v.SetConfigFile(path)
		v.SetConfigType("yaml")
		if err := v.ReadInConfig(); err != nil {
			return nil, path, exit.Usagef("configuration %s: %v", path, err)
		}
		var file File
		// Key names are lower-cased by the reader; matching ignores case, and what matches nothing is refused.
		if err := v.UnmarshalExact(&file, func(c *mapstructure.DecoderConfig) { c.WeaklyTypedInput = false }); err != nil {
			return nil, path, &exit.Error{
				Code: exit.Usage, Msg: fmt.Sprintf("configuration %s: %s", path, oneLine(err)),
				Hint: "known keys: current, contexts[name, bootstrapServer, zookeeper, commandConfig, properties, readOnly, clusterId]",
			}
		}
		return &file, path, file.check(path)
	}
	return &File{}, "", nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func (f *File) check(path string) error {
	seen := map[string]bool{}
	for i := range f.Contexts {
		c := &f.Contexts[i]
		if err := CheckContextName(c.Name); err != nil {
			return exit.Usagef("configuration %s: context %d: %v", path, i+1, err)
		}
		if seen[c.Name] {
			return exit.Usagef("configuration %s: context %q is there twice", path, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// CheckContextName refuses names that would be hard to type.
func CheckContextName(name string) error {
	if name == "" || strings.ContainsAny(name, " \t\n\"'") {
		return exit.Usagef("context name %q is empty or has blanks or quotes", name)
	}
	return nil
}

// Check refuses a context whose addresses or properties cannot be meant.
func (c *Context) Check() error {
	if c.BootstrapServer == "" && c.ZooKeeper == "" {
		return exit.Usagef("context %q needs --bootstrap-server or --zookeeper", c.Name)
	}
	if c.BootstrapServer != "" {
		if _, err := admin.ParseBootstrap(c.BootstrapServer); err != nil {
			return err
		}
	}
	if c.ZooKeeper != "" {
		if _, err := admin.ParseZooKeeperAddress(c.ZooKeeper); err != nil {
			return err
		}
	}
	props, err := parsePairs(c.Properties)
	if err != nil {
		return err
	}
	return props.Check()
}

// WriteFile replaces the configuration in one step. It may hold secrets: only the owner can read it.
func (f *Factory) WriteFile(file *File) error {
	path := f.ConfigPath()
	data, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".config-*.yaml")
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Close()
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return os.Rename(tmp.Name(), path)
}

// parsePairs reads key=value settings.
func parsePairs(pairs []string) (admin.Properties, error) {
	out := admin.Properties{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("-X %s is not key=value", k), Hint: "kctl -X list shows the settings"}
		}
		out[k] = strings.TrimSpace(v)
	}
	return out, nil
}

// SortedNames returns the names of the file's contexts.
func (f *File) SortedNames() []string {
	names := make([]string, len(f.Contexts))
	for i := range f.Contexts {
		names[i] = f.Contexts[i].Name
	}
	slices.Sort(names)
	return names
}
