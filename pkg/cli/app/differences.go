package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/cli/app/compare"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/drift"
	"github.com/manifold-dev/manifold/pkg/delivery/traffic"
)

// plan is what a release of a revision would change. It is what -o json and -o yaml print.
type plan struct {
	Application string       `json:"application"`
	Revision    string       `json:"revision"`
	Targets     []planTarget `json:"targets"`
	// Clusters says why it cannot be told which clusters join and leave, "" if it can.
	Clusters string `json:"clusters,omitempty"`
	// Plugins are what plugins say of their deploy targets, and PluginsError is why they could not be asked.
	Plugins      []pluginPart `json:"plugins,omitempty"`
	PluginsError string       `json:"pluginsError,omitempty"`
}

// planTarget is what would change in a target.
type planTarget struct {
	Name string `json:"name"`
	// From is the revision that is live there, "" if that is not known.
	From    string       `json:"from,omitempty"`
	Changes []planChange `json:"changes,omitempty"`
	// Joins are the clusters that get the target by the next release, and Leaves those that it leaves.
	Joins  []string `json:"joins,omitempty"`
	Leaves []string `json:"leaves,omitempty"`
	// Gone says that the application has no such target any more.
	Gone bool `json:"gone,omitempty"`
	// Error says why nothing can be told of the target.
	Error string `json:"error,omitempty"`
}

// action is what a release does with an object.
type action string

const (
	created action = "create"
	changed action = "change"
	deleted action = "delete"
	left    action = "leave"
	unknown action = "unknown"
)

// planChange is what would change of an object.
type planChange struct {
	Object string `json:"object"`
	Action action `json:"action"`
	// Diff is a unified diff of what there is and what there would be.
	Diff string `json:"diff,omitempty"`
	// Reason says why the object is left.
	Reason string `json:"reason,omitempty"`
	// Error says why that cannot be told.
	Error string `json:"error,omitempty"`
}

// outcome is what came of reading or trying an object once.
type outcome struct {
	object *unstructured.Unstructured
	err    error
}

// trier tells what there is, and what there would be if a manifest were applied.
type trier interface {
	Live(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Applied(context.Context, *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// planner finds what would change. It tries each manifest once, whichever targets have it.
type planner struct {
	reader    *contents.Reader
	trier     trier
	namespace string
	prunes    prunes
	// drift compares with what is live above, whatever a target has, and leaves out what spec says of that and what autoscalers set.
	drift  bool
	spec   *v1alpha1.Drift
	scaled map[string]bool
	// routes makes what sends requests to the application, which is in no revision, and options say which Service is in front.
	routes        traffic.Maker
	options       copies.Options
	applied, live map[string]outcome
	// same are the objects that are in some target as they were found.
	same map[string]bool
}

// newPlanner returns a planner that knows nothing yet.
func newPlanner(reader *contents.Reader, trier trier, namespace string) *planner {
	return &planner{
		reader: reader, trier: trier, namespace: namespace, applied: map[string]outcome{}, live: map[string]outcome{}, same: map[string]bool{},
	}
}

// target finds what would change in a target that has the revision from, if that is known.
func (p *planner) target(ctx context.Context, name, from, to string) planTarget {
	out := planTarget{Name: name, From: from}
	wanted, err := p.reader.Contents(p.namespace, to, name)
	if err != nil {
		out.Error = text.Line(err.Error(), longest)
		return out
	}
	var had []contents.Content
	if from != "" && !p.drift {
		had, err = p.reader.Contents(p.namespace, from, name)
		if err != nil {
			had, out.From = nil, "" // what there is above tells enough
		}
	}
	p.scaled = autoscaled(wanted)
	before := map[string]contents.Content{}
	for _, content := range had {
		before[compare.Title(content.Object)] = content
	}
	for _, content := range wanted {
		title := compare.Title(content.Object)
		old, there := before[title]
		delete(before, title)
		if there && old.Hash == content.Hash {
			continue
		}
		if change := p.change(ctx, title, old.Object, content, to, out.From); change != nil {
			out.Changes = append(out.Changes, *change)
		}
	}
	out.Changes = append(out.Changes, p.sends(ctx, wanted)...)
	for _, content := range had {
		if title := compare.Title(content.Object); before[title].Object != nil {
			out.Changes = append(out.Changes, p.removal(name, title))
		}
	}
	return out
}

// sends finds what would change of the objects that are made to send requests to a target. They are what they are above, whichever revision was there.
func (p *planner) sends(ctx context.Context, wanted []contents.Content) []planChange {
	if !p.routes.Makes() || !p.routes.Traffic.Makes() {
		return nil // what goes along with a canary is there as long as that is
	}
	var objects []*unstructured.Unstructured
	for _, content := range wanted {
		objects = append(objects, content.Object)
	}
	title := fmt.Sprintf("%s %s", p.routes.Traffic.Method, p.routes.Name)
	refused := func(err error) []planChange {
		return []planChange{{Object: title, Action: unknown, Error: text.Line(err.Error(), longest)}}
	}
	front, _, err := p.options.Front(objects)
	if err != nil {
		return refused(fmt.Errorf("spec.%w", err))
	}
	made, err := p.routes.Make(nil, front, p.options.Ports(objects))
	if err != nil {
		return refused(fmt.Errorf("spec.%w", err))
	}
	var out []planChange
	for _, route := range made {
		title := compare.Title(route.Object)
		live := p.liveOf(ctx, title, route.Object)
		if live.object != nil && live.object.GetLabels()[v1alpha1.LabelApplication] != p.routes.Name {
			out = append(out, planChange{Object: title, Action: unknown,
				Error: fmt.Sprintf("it is there already, and does not belong to Application %s: no release begins until it is deleted, or named in spec.traffic.name", p.routes.Name)})
			continue
		}
		if change := p.change(ctx, title, nil, contents.Content{Object: route.Object, Hash: "made " + title}, "made for "+p.routes.Traffic.Host, ""); change != nil {
			out = append(out, *change)
		}
	}
	return out
}

// change finds what would change of an object, nil if nothing would. old is the manifest that the target has, nil to compare with what there is.
func (p *planner) change(ctx context.Context, title string, old *unstructured.Unstructured, content contents.Content, to, from string) *planChange {
	before, what := p.liveOf(ctx, title, content.Object), "live"
	if old != nil {
		before, what = p.appliedOf(ctx, title+"@"+from, old), from
	}
	manifest := content.Object
	if p.drift && before.object != nil {
		ignored := append(drift.Ignored(p.spec, manifest.GroupVersionKind().GroupKind(), manifest.GetName()), copies.Owned(delivery.Primary, manifest, p.scaled)...)
		manifest = drift.Keeping(manifest, before.object, ignored)
	}
	after := p.appliedOf(ctx, content.Hash, manifest)
	if err := errors.Join(before.err, after.err); err != nil {
		return &planChange{Object: title, Action: unknown, Error: text.Line(err.Error(), longest)}
	}
	diff, err := compare.Unified(before.object, after.object, title+" ("+what+")", title+" ("+to+")")
	switch {
	case err != nil:
		return &planChange{Object: title, Action: unknown, Error: text.Line(err.Error(), longest)}
	case diff == "":
		p.same[title] = true
		return nil
	case before.object == nil:
		return &planChange{Object: title, Action: created, Diff: diff}
	}
	return &planChange{Object: title, Action: changed, Diff: diff}
}

// autoscaled are the workloads among contents whose replicas an autoscaler among them sets.
func autoscaled(of []contents.Content) map[string]bool {
	var objects []*unstructured.Unstructured
	for _, content := range of {
		objects = append(objects, content.Object)
	}
	return copies.Autoscaled(objects)
}

func (p *planner) removal(target, title string) planChange {
	if p.prunes.in(target) {
		return planChange{Object: title, Action: deleted}
	}
	return planChange{Object: title, Action: left, Reason: p.prunes.why}
}

// withoutOverlays leaves out, of differences from what is live above, objects that are there as one of the targets has them: there is one object
// above for targets that have different ones.
func (p *planner) withoutOverlays(targets []planTarget) {
	if !p.drift {
		return
	}
	for i := range targets {
		targets[i].Changes = slices.DeleteFunc(targets[i].Changes, func(c planChange) bool { return c.Action == changed && p.same[c.Object] })
	}
}

func (p *planner) liveOf(ctx context.Context, key string, manifest *unstructured.Unstructured) outcome {
	return once(p.live, key, func() (*unstructured.Unstructured, error) { return p.trier.Live(ctx, manifest) })
}

func (p *planner) appliedOf(ctx context.Context, key string, manifest *unstructured.Unstructured) outcome {
	return once(p.applied, key, func() (*unstructured.Unstructured, error) { return p.trier.Applied(ctx, manifest) })
}

func once(known map[string]outcome, key string, find func() (*unstructured.Unstructured, error)) outcome {
	found, there := known[key]
	if !there {
		found.object, found.err = find()
		known[key] = found
	}
	return found
}

// differs reports whether anything would change.
func (p *plan) differs() bool {
	return slices.ContainsFunc(p.Targets, func(t planTarget) bool {
		return len(t.Joins)+len(t.Leaves) > 0 || slices.ContainsFunc(t.Changes, func(c planChange) bool { return c.Action != left })
	}) || slices.ContainsFunc(p.Plugins, func(of pluginPart) bool { return of.Differs })
}

// failed says that there are objects of which nothing can be told; they have been shown.
func (p *plan) failed() error {
	number := 0
	for _, target := range p.Targets {
		if target.Error != "" {
			number++
		}
		for _, change := range target.Changes {
			if change.Error != "" {
				number++
			}
		}
	}
	for _, of := range p.Plugins {
		if of.Error != "" {
			number++
		}
	}
	if p.PluginsError != "" {
		number++
	}
	if number == 0 {
		return nil
	}
	return fmt.Errorf("what %s of application %q would change cannot be told in %d places; they are listed above", p.Revision, p.Application, number)
}

// print writes the plan for people. Targets of which the same is to be told share a heading.
func (p *plan) print(out io.Writer) error {
	var order []string
	targets := map[string][]string{}
	for i := range p.Targets {
		body := p.Targets[i].body()
		if targets[body] == nil {
			order = append(order, body)
		}
		targets[body] = append(targets[body], p.Targets[i].title())
	}
	for i, body := range order {
		behind := "\n"
		if i == 0 {
			behind = ""
		}
		if _, err := fmt.Fprintf(out, "%sTarget %s: %s\n", behind, text.Line(strings.Join(targets[body], ", "), longest), body); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, p.moves()+p.byPlugins())
	return err
}

// moves tells which clusters join and leave, after all else, so that targets in which the same changes are told of together.
func (p *plan) moves() string {
	var out strings.Builder
	for i := range p.Targets {
		for _, cluster := range p.Targets[i].Joins {
			fmt.Fprintf(&out, "+ cluster %q joins target %s\n", cluster, p.Targets[i].Name)
		}
		for _, cluster := range p.Targets[i].Leaves {
			fmt.Fprintf(&out, "- cluster %q leaves target %s\n", cluster, p.Targets[i].Name)
		}
	}
	if p.Clusters != "" {
		fmt.Fprintf(&out, "Clusters that join or leave: unknown: %s\n", p.Clusters)
	}
	if out.Len() > 0 {
		return "\n" + out.String()
	}
	return ""
}

func (t *planTarget) title() string {
	if t.From == "" {
		return t.Name
	}
	return t.Name + " (has " + t.From + ")"
}

// body is what is to be told of a target.
func (t *planTarget) body() string {
	var out strings.Builder
	switch {
	case t.Error != "":
		fmt.Fprintf(&out, "unknown: %s\n", t.Error)
	case t.Gone:
		out.WriteString("it is no target any more\n")
	case len(t.Changes) == 0:
		out.WriteString("nothing changes\n")
	default:
		fmt.Fprintf(&out, "%s\n", summary(t.Changes))
	}
	for _, c := range t.Changes {
		switch c.Action {
		case unknown:
			fmt.Fprintf(&out, "? %s: %s\n", c.Object, c.Error)
		case deleted:
			fmt.Fprintf(&out, "- %s is deleted\n", c.Object)
		case left:
			fmt.Fprintf(&out, "= %s is left there, as %s\n", c.Object, c.Reason)
		default:
			out.WriteString(c.Diff)
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// summary counts what is done with how many objects.
func summary(changes []planChange) string {
	number := map[action]int{}
	for _, c := range changes {
		number[c.Action]++
	}
	var parts []string
	for _, of := range []action{created, changed, deleted, left, unknown} {
		if number[of] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", number[of], of))
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), "to unknown", "unknown")
}
