package factory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/output"
)

// Factory makes what commands need, once and on demand. It is used by one command at a time.
type Factory struct {
	IO     *iostreams.IOStreams
	Getenv func(string) string
	Now    func() time.Time
	Flags  *pflag.FlagSet // the global flags, parsed

	// Undoing is the journal's key of the entry that the running command takes back; empty for none.
	Undoing string

	// EarlyOutput is -o as it stands among the arguments: what counts until they are parsed, and when that fails.
	EarlyOutput string

	// NewAdmin replaces the cluster in tests.
	NewAdmin func(ctx context.Context, cfg admin.Config) (*admin.Client, error)

	once     sync.Once
	settings *Settings
	err      error
	client   *admin.Client

	journalChecked bool
}

// New returns a Factory over the given streams and environment.
func New(io *iostreams.IOStreams, getenv func(string) string) *Factory {
	return &Factory{IO: io, Getenv: getenv, Now: time.Now, NewAdmin: admin.Open}
}

// Settings are all global settings after flags, environment, context and defaults were laid over each other.
type Settings struct {
	BootstrapServer string
	ZooKeeper       string
	Context         string // name of the context in use, empty for none
	ReadOnly        bool
	ClusterID       string // the id that the context remembers; empty when it knows none yet
	CommandConfig   string
	Output          output.Format
	NoHeaders       bool
	Timeout         time.Duration
	Verbose         bool
	FromDir         string            // DIR[@/chroot] of --from-dir
	Properties      admin.Properties  // may hold secrets
	Origin          map[string]string // where each address came from: flag, environment, context, default

	note func(text string)
}

// The names of the global flags; each has an environment variable KCTL_NAME.
const (
	FlagBootstrap     = "bootstrap-server"
	FlagZooKeeper     = "zookeeper"
	FlagContext       = "context"
	FlagCommandConfig = "command-config"
	FlagOutput        = "output"
	FlagNoHeaders     = "no-headers"
	FlagTimeout       = "timeout"
	FlagVerbose       = "verbose"
	FlagProperty      = "property"
	FlagFromDir       = "from-dir"
)

// DefaultBootstrap is tried when nothing says where the cluster is.
const DefaultBootstrap = "127.0.0.1:9092"

// AddGlobalFlags declares the global flags.
func AddGlobalFlags(fs *pflag.FlagSet) {
	fs.StringP(FlagBootstrap, "b", "", "brokers to start from, HOST:PORT,... (default "+DefaultBootstrap+") [KCTL_BOOTSTRAP_SERVER]")
	fs.StringP(FlagZooKeeper, "z", "", "ZooKeeper, HOST:PORT,.../chroot [KCTL_ZOOKEEPER]")
	fs.String(FlagContext, "", "named cluster of the configuration file [KCTL_CONTEXT]")
	fs.String(FlagCommandConfig, "", "a Java client's .properties file [KCTL_COMMAND_CONFIG]")
	fs.StringArrayP(FlagProperty, "X", nil, "client setting key=value, repeatable; -X list shows them")
	fs.String(FlagFromDir, "", "read a ZooKeeper data directory, DIR[@/chroot], instead of a cluster [KCTL_FROM_DIR]")
	fs.StringP(FlagOutput, "o", "table", "output: "+strings.Join(output.Formats(), "|")+" [KCTL_OUTPUT]")
	fs.Bool(FlagNoHeaders, false, "leave out the headings of tables [KCTL_NO_HEADERS]")
	fs.Duration(FlagTimeout, admin.DefaultTimeout, "time for one operation on the cluster [KCTL_TIMEOUT]")
	fs.BoolP(FlagVerbose, "v", false, "log connections to stderr [KCTL_VERBOSE]")
}

// Aliases are other spellings of flags that people bring along from other tools.
func Aliases(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "bootstrap-servers", "brokers":
		name = FlagBootstrap
	case "zookeepers":
		name = FlagZooKeeper
	case "resource-pattern-type": // kafka-acls.sh
		name = "pattern"
	}
	return pflag.NormalizedName(name)
}

// Settings lays flag over environment over context over default. Nothing is contacted.
func (f *Factory) Settings() (*Settings, error) {
	f.once.Do(func() { f.settings, f.err = f.load() })
	return f.settings, f.err
}

// load is the only reader of viper.
func (f *Factory) load() (*Settings, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	for _, name := range []string{FlagBootstrap, FlagZooKeeper, FlagContext, FlagCommandConfig, FlagOutput, FlagNoHeaders, FlagTimeout, FlagVerbose} {
		if err := v.BindPFlag(name, f.Flags.Lookup(name)); err != nil {
			return nil, err
		}
		// The environment is handed in, so it is laid in by hand below the flags.
		if env := f.env(name); env != "" && !f.Flags.Changed(name) {
			v.Set(name, env)
		}
	}
	file, err := f.ReadFile()
	if err != nil {
		return nil, err
	}
	props, err := f.properties(v, file)
	if err != nil {
		return nil, err
	}
	s := props
	s.Output = output.Format(v.GetString(FlagOutput))
	if !slices.Contains(output.Formats(), string(s.Output)) {
		return nil, exit.Usagef("output %q is not one of %s", s.Output, strings.Join(output.Formats(), ", "))
	}
	if err := f.fromDir(s); err != nil {
		return nil, err
	}
	s.NoHeaders, s.Verbose = v.GetBool(FlagNoHeaders), v.GetBool(FlagVerbose)
	if s.Timeout, err = time.ParseDuration(v.GetString(FlagTimeout)); err != nil || s.Timeout <= 0 {
		return nil, exit.Usagef("timeout %q is not a duration above zero, such as 10s", v.GetString(FlagTimeout))
	}
	return s, nil
}

// EnvOf is the environment variable of a global flag.
func EnvOf(flag string) string { return "KCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// env reads a flag's variable; the aliases of the bootstrap flag have theirs.
func (f *Factory) env(flag string) string {
	v := f.Getenv(EnvOf(flag))
	if v == "" && flag == FlagBootstrap {
		for _, alias := range []string{"bootstrap-servers", "brokers"} {
			if v = f.Getenv(EnvOf(alias)); v != "" {
				break
			}
		}
	}
	return v
}

// properties settles addresses and client settings. A context's addresses and settings belong together:
// they are used only when neither flag nor environment names an address.
func (f *Factory) properties(v *viper.Viper, file *File) (*Settings, error) {
	s := &Settings{
		BootstrapServer: v.GetString(FlagBootstrap), ZooKeeper: v.GetString(FlagZooKeeper),
		CommandConfig: v.GetString(FlagCommandConfig), Properties: admin.Properties{}, Origin: map[string]string{},
	}
	byFlag, byFile, err := f.explicitProperties(s.CommandConfig)
	if err != nil {
		return nil, err
	}
	s.BootstrapServer = f.address(FlagBootstrap, "bootstrap.servers", byFlag, byFile, s.BootstrapServer)
	s.ZooKeeper = f.address(FlagZooKeeper, "zookeeper.connect", byFlag, byFile, s.ZooKeeper)
	named := v.GetString(FlagContext)
	name := named
	if name == "" && s.BootstrapServer == "" && s.ZooKeeper == "" {
		name = file.Current
	}
	if name != "" {
		ctx, err := file.Find(name)
		if err != nil {
			return nil, err
		}
		if err := f.applyContext(s, ctx); err != nil {
			return nil, err
		}
	}
	if s.BootstrapServer == "" && s.ZooKeeper == "" {
		s.BootstrapServer, s.Origin[FlagBootstrap] = DefaultBootstrap, "default"
	}
	maps.Copy(s.Properties, byFile)
	maps.Copy(s.Properties, byFlag)
	delete(s.Properties, "bootstrap.servers")
	delete(s.Properties, "zookeeper.connect")
	return s, s.Properties.Check()
}

// address picks an address: the flag, then -X, then a file named by a flag, then the variable, then a file
// named by a variable.
func (f *Factory) address(flag, property string, byFlag, byFile admin.Properties, value string) string {
	given := []string{byFlag[property], byFile[property], value}
	switch {
	case f.Flags.Changed(flag):
		return value
	case !f.Flags.Changed(FlagCommandConfig):
		given = []string{byFlag[property], value, byFile[property]}
	}
	for _, v := range given {
		if v != "" {
			return v
		}
	}
	return ""
}

// explicitProperties are those of -X and those of the properties file.
func (f *Factory) explicitProperties(file string) (byFlag, byFile admin.Properties, err error) {
	if file != "" {
		if byFile, err = readProperties(file); err != nil {
			return nil, nil, err
		}
	}
	pairs, err := f.Flags.GetStringArray(FlagProperty)
	if err != nil {
		return nil, nil, err
	}
	byFlag, err = parsePairs(pairs)
	return byFlag, byFile, err
}

func readProperties(path string) (admin.Properties, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, exit.Usagef("--command-config: %v", err)
	}
	defer file.Close()
	props, err := admin.ReadProperties(file)
	if err != nil {
		e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("%s: %v", path, err), Hint: admin.HintOf(err)}
		return nil, e
	}
	return props, nil
}

func (f *Factory) applyContext(s *Settings, c *Context) error {
	s.Context, s.ReadOnly, s.ClusterID = c.Name, c.ReadOnly, c.ClusterID
	if s.BootstrapServer == "" && s.ZooKeeper == "" {
		s.BootstrapServer, s.ZooKeeper = c.BootstrapServer, c.ZooKeeper
		s.Origin[FlagBootstrap], s.Origin[FlagZooKeeper] = "context", "context"
	}
	if c.CommandConfig != "" && s.CommandConfig == "" {
		props, err := readProperties(c.CommandConfig)
		if err != nil {
			return err
		}
		maps.Copy(s.Properties, props)
	}
	props, err := parsePairs(c.Properties)
	if err != nil {
		return err
	}
	maps.Copy(s.Properties, props)
	return nil
}

// Config turns settings into the configuration of a cluster.
func (s *Settings) Config() (admin.Config, error) {
	cfg := admin.Config{}
	if err := s.Properties.Apply(&cfg); err != nil {
		return cfg, err
	}
	if cfg.Timeout == 0 || s.Timeout != admin.DefaultTimeout {
		cfg.Timeout = s.Timeout
	}
	if s.FromDir != "" {
		return cfg, s.readFromDir(&cfg)
	}
	var err error
	if s.BootstrapServer != "" {
		if cfg.Bootstrap, err = admin.ParseBootstrap(s.BootstrapServer); err != nil {
			return cfg, err
		}
	}
	if s.ZooKeeper != "" {
		if cfg.ZooKeeper, err = admin.ParseZooKeeperAddress(s.ZooKeeper); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// Admin returns the cluster. The connection is made by its first use, or here when the context remembers a cluster id:
// another cluster behind its addresses is refused before anything is read or changed.
func (f *Factory) Admin(ctx context.Context) (*admin.Client, error) {
	if f.client != nil {
		return f.client, nil
	}
	s, err := f.Settings()
	if err != nil {
		return nil, err
	}
	cfg, err := s.Config()
	if err != nil {
		return nil, err
	}
	if s.Verbose {
		cfg.Logger = slog.New(slog.NewTextHandler(f.IO.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	cfg.ClusterID = s.ClusterID
	c, err := f.NewAdmin(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := f.guard(ctx, s, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	f.client = c
	return c, nil
}

// Close releases the cluster.
func (f *Factory) Close() error {
	if f.client == nil {
		return nil
	}
	f.remember(f.client.ClusterID())
	err := f.client.Close()
	f.client = nil
	return err
}

// Printer returns the printer of the chosen format.
func (f *Factory) Printer() (*output.Printer, error) {
	s, err := f.Settings()
	if err != nil {
		return nil, err
	}
	return &output.Printer{Out: f.IO.Out, Format: s.Output, NoHeaders: s.NoHeaders, TTY: f.IO.OutTTY}, nil
}

// Machine reports whether errors are printed as JSON; it never fails.
func (f *Factory) Machine() bool {
	if f.settings != nil {
		return f.settings.Output.Machine()
	}
	if f.Flags != nil {
		if v, err := f.Flags.GetString(FlagOutput); err == nil && f.Flags.Changed(FlagOutput) {
			return output.Format(v).Machine()
		}
	}
	if f.EarlyOutput != "" {
		return output.Format(f.EarlyOutput).Machine()
	}
	return output.Format(f.Getenv(EnvOf(FlagOutput))).Machine()
}

// ErrReadOnly says that the context forbids changes.
var ErrReadOnly = errors.New("the context is read-only")

// Writable refuses changes in a read-only context.
func (f *Factory) Writable() error {
	s, err := f.Settings()
	if err != nil {
		return err
	}
	if s.FromDir != "" {
		return exit.Usagef("nothing can be changed with --from-dir: a data directory is only read")
	}
	if s.ReadOnly {
		return &exit.Error{
			Code: exit.Usage, Msg: fmt.Sprintf("context %q: %v", s.Context, ErrReadOnly),
			Hint: "use another context, or name the cluster with -b",
		}
	}
	return nil
}

// WantsAll reports whether the chosen output shows columns that a plain table leaves out, so that commands
// may skip what nobody will see.
func (f *Factory) WantsAll() bool {
	s, err := f.Settings()
	return err == nil && (s.Output == output.Wide || s.Output.Machine())
}
