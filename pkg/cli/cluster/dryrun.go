package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
)

// print writes what joining would make in the cluster, and changes nothing. With a kubeconfig, it includes the custom kinds that Manifold
// may manage there already, which joining keeps.
func (o *JoinOptions) print(ctx context.Context) error {
	logical, err := openLogical(ctx, o.logicalConfig)
	if err != nil {
		return err
	}
	beside := allowances{kinds: o.kinds, priorities: o.priorities, volumes: o.Volumes}
	if o.PodWebhooks {
		if beside.asks, err = logical.askingOf(ctx, o.Name); err != nil {
			return fmt.Errorf("join cluster %q: %w", o.Name, err)
		}
	}
	if o.Kubeconfig != "" {
		before, err := o.allowedBefore(ctx, logical)
		if err != nil {
			return fmt.Errorf("join cluster %q: %w", o.Name, err)
		}
		beside.kinds = append(before.kinds, beside.kinds...)
		if beside.priorities == nil {
			beside.priorities = before.priorities
		}
	}
	all, err := everything(logical.uid, beside)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "# What \"manifold cluster join %s\" makes in the cluster, for the logical cluster %s.\n", o.Name, logical.uid)
	return printPieces(o.Out, all)
}

func (o *JoinOptions) allowedBefore(ctx context.Context, logical *logical) (before allowances, err error) {
	access, err := loadAccess(o.Kubeconfig, o.Context)
	if err != nil {
		return before, err
	}
	physical, err := reach(ctx, access)
	if err != nil {
		return before, err
	}
	if before.kinds, err = physical.allowed(ctx, logical.uid); err != nil {
		return before, err
	}
	before.priorities, err = physical.allowedPriorities(ctx, logical.uid)
	return before, err
}

// printPieces writes pieces as YAML documents, each with a comment that says what it is for, and so with every rule of a role.
func printPieces(out io.Writer, all []piece) error {
	var text bytes.Buffer
	for _, p := range all {
		fmt.Fprintf(&text, "---\n# %s\n", p.why)
		object := p.object.DeepCopy().Object
		if p.rights != nil {
			delete(object, "rules")
		}
		metadata := object["metadata"].(map[string]any)
		delete(metadata, "creationTimestamp")
		body, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write %s as YAML: %w", p, err)
		}
		text.Write(body)
		if err := printRules(&text, p.rights); err != nil {
			return fmt.Errorf("write the rules of %s as YAML: %w", p, err)
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

func printRules(out *bytes.Buffer, rights []Right) error {
	if len(rights) == 0 {
		return nil
	}
	out.WriteString("rules:\n")
	for i, rule := range policyRules(rights) {
		body, err := yaml.Marshal([]any{rule})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "# %s\n%s", strings.ReplaceAll(rights[i].Why, "\n", " "), body)
	}
	return nil
}
