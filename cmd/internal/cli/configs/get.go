package configs

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type getOptions struct {
	f         *factory.Factory
	scope     scope
	keys      []string
	all       bool
	overrides bool
	synonyms  bool
	source    string
}

func newGet(f *factory.Factory) *cobra.Command {
	o := &getOptions{f: f}
	cmd := &cobra.Command{
		Use:   "get (TYPE/NAME[,NAME..]... | --topic RE) [KEY...]",
		Short: "Show configuration values and where they come from",
		Long: `Show configuration values: those that are not Kafka's default, the named keys, or with --all every one. --overrides
keeps to what is set on the resource itself. A secret is shown as *** (null in JSON).

TYPE/NAME is topic/NAME, broker/ID, broker/default (all brokers), broker-logger/ID, client-metrics/NAME or group/NAME.
When no broker answers, what ZooKeeper holds is shown (exit 3); --source zookeeper asks it only.`,
		Example: `  kctl configs get topic/orders
  kctl configs get topic/orders,invoices retention.ms cleanup.policy -o wide
  kctl configs get broker/1 --all --synonyms
  kctl configs get --topic 'orders.*' --overrides -o json`,
		Args: verb.Args(0, -1, "resources and keys"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.keys, err = o.scope.parse(args); err != nil {
				return err
			}
			if o.all && o.overrides {
				return exit.Usagef("--all excludes --overrides")
			}
			if o.source != string(model.SourceProtocol) && o.source != string(model.SourceZooKeeper) {
				return exit.Usagef("--source %q is neither protocol nor zookeeper", o.source)
			}
			return runGet(cmd.Context(), o)
		},
		ValidArgsFunction: complete(f, false),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.scope.topic, "topic", "", topicFlag)
	fl.BoolVar(&o.all, "all", false, "default values too")
	fl.BoolVar(&o.overrides, "overrides", false, "only what is set on the resource itself")
	fl.BoolVar(&o.synonyms, "synonyms", false, "show where each value could come from, the one in force first")
	fl.StringVar(&o.source, "source", string(model.SourceProtocol), "protocol or zookeeper")
	return cmd
}

func runGet(ctx context.Context, o *getOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	found, problems, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	var out []rows.ConfigEntry
	failed := 0
	for i := range found {
		r := &found[i]
		if r.Err != nil {
			failed++
			problems = append(problems, model.Problem{Object: r.Resource.String(), Message: r.Err.Error()})
			continue
		}
		for _, k := range o.keys {
			if r.Entry(k) == nil && r.Source == model.SourceProtocol {
				return unknownKey(ctx, c, &plan.UnknownKeyError{Resource: r.Resource, Key: k})
			}
		}
		for j := range r.Entries {
			if o.wants(r, &r.Entries[j]) {
				out = append(out, rows.OfConfigEntry(r.Resource, &r.Entries[j]))
			}
		}
	}
	if failed == len(found) && failed > 0 {
		return found[0].Err
	}
	kind := rows.ConfigEntryKind
	if o.synonyms {
		kind = withSynonyms(kind)
	}
	return verb.List(o.f, kind, out, problems)
}

// read asks the brokers, and ZooKeeper when none answers or when it is wanted.
func (o *getOptions) read(ctx context.Context, c *admin.Client) ([]model.ResourceConfigs, []model.Problem, error) {
	fromZooKeeper := func(resources []model.ConfigResource) ([]model.ResourceConfigs, error) {
		if o.scope.topic != "" {
			return nil, exit.Usagef("--topic needs a broker: name the topics")
		}
		return c.ConfigsFromZooKeeper(ctx, resources)
	}
	if o.source == string(model.SourceZooKeeper) {
		found, err := fromZooKeeper(o.scope.named)
		return found, nil, err
	}
	resources, err := o.scope.resolve(ctx, c)
	var found []model.ResourceConfigs
	if err == nil {
		found, err = c.Configs(ctx, resources, keysOrAll(o.keys))
	}
	if err == nil || admin.KindOf(err) != admin.Unreachable || !c.HasZooKeeper() || o.scope.topic != "" {
		return found, nil, err
	}
	found, zerr := fromZooKeeper(o.scope.named)
	if zerr != nil {
		return nil, nil, err
	}
	return found, []model.Problem{{Object: "brokers", Message: err.Error() + "; shown is what ZooKeeper holds, without defaults"}}, nil
}

func keysOrAll(keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	return keys
}

func (o *getOptions) wants(r *model.ResourceConfigs, e *model.ConfigEntry) bool {
	own := e.Source == r.Resource.OwnSource()
	switch {
	case o.overrides:
		return own && (len(o.keys) == 0 || slices.Contains(o.keys, e.Name))
	case len(o.keys) > 0:
		return slices.Contains(o.keys, e.Name)
	}
	return o.all || e.Source != model.DefaultSource
}

// unknownKey adds a key that may be meant.
func unknownKey(ctx context.Context, c *admin.Client, e *plan.UnknownKeyError) error {
	r := e.Resource
	if r == (model.ConfigResource{Type: model.BrokerResource}) { // the default lists only what is set: a broker lists all
		if s, err := c.Snapshot(ctx, admin.SnapshotOptions{NoTopics: true, NoZooKeeper: true}); err == nil && len(s.Brokers) > 0 {
			r.Name = fmt.Sprint(int32(s.Brokers[0].ID))
		}
	}
	out := &exit.Error{Code: exit.Usage, Msg: e.Error(), Hint: fmt.Sprintf("kctl configs get %s --all shows the keys", r)}
	all, err := c.Configs(ctx, []model.ConfigResource{r}, nil)
	if err != nil || all[0].Err != nil {
		return out
	}
	if near := nearestKey(&all[0], e.Key); near != "" {
		out.Hint = near
	}
	return out
}

// nearestKey is the hint at a key that may be meant; empty when none is near.
func nearestKey(r *model.ResourceConfigs, key string) string {
	var names []string
	for i := range r.Entries {
		names = append(names, r.Entries[i].Name)
	}
	if near, ok := plan.Nearest(key, names); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// withSynonyms shows the column of synonyms in a plain table too.
func withSynonyms(k rows.Kind[rows.ConfigEntry]) rows.Kind[rows.ConfigEntry] {
	k.Columns = slices.Clone(k.Columns)
	for i := range k.Columns {
		if k.Columns[i].Name == "SYNONYMS" {
			k.Columns[i].Wide = false
		}
	}
	return k
}
