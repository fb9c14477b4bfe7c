package applications

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/changes"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/pipecd"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/secrets"
)

// plan says how an application is rendered from what was found.
type plan struct {
	app     *v1alpha1.Application
	found   *sources.Found
	targets []v1alpha1.Target
	// byFiles says that the application goes by the files that a revision changes.
	byFiles bool
	// paths are patterns of files outside of the folder that count.
	paths []string
	// copies are how the pods of variants are told apart. Clusters hold what a revision says, so it has the label already.
	copies copies.Options
	// changes are what stages change of the manifests.
	changes read.Changes
	// delivery is what the application file says, nil if there is none, and registered are the targets that it names among the application's own.
	delivery   *v1alpha1.RevisionDelivery
	registered read.Registered
	// undone are sentences about what the file asks for and nobody does.
	undone []string
}

// mostNames bounds what is said of the names of targets.
const mostNames = 200

// planOf takes in what the application file says, if there is one. The error is that of a file which no application could be.
func planOf(app *v1alpha1.Application, found *sources.Found) (*plan, error) {
	out := &plan{app: app, found: found}
	if found.File != nil {
		if err := out.read(found.File); err != nil {
			return nil, err
		}
	} else if errs := validation.ValidateTargets(&app.Spec); len(errs) > 0 {
		return nil, fmt.Errorf("spec.targets names none, and there is no %s in %s: %w", app.Spec.Source.Git.ApplicationFile(), place(out, &v1alpha1.Target{}), errs.ToAggregate())
	}
	for _, name := range found.Unread {
		out.undone = append(out.undone, fmt.Sprintf("%s is not honoured: the application file is %s, unless spec.source.git.pipecd.file names another one", name, v1alpha1.PipecdFile))
	}
	if found.File == nil && len(app.Spec.Plugins) > 0 {
		out.delivery = &v1alpha1.RevisionDelivery{Plugins: app.Spec.Plugins} // what plugins are to read is a part of the revision
	}
	spec := read.With(app.Spec, out.delivery)
	_, undone, _ := read.Stages(read.StagesOf(spec), field.NewPath("spec", "pipeline", "stages")) // what is wrong with them is refused where they are written
	out.undone = append(out.undone, undone...)
	out.undone = append(out.undone, out.undoneDrift()...)
	out.byFiles, out.paths = changes.Asked(spec), spec.Trigger.Paths
	out.copies, out.changes = read.Copies(spec), read.ChangesOf(spec)
	if spec.Source.Selector != nil {
		out.copies.Labelled, out.changes = false, read.Changes{} // what users apply themselves they label themselves
	}
	out.targets = spec.Targets
	if len(out.targets) == 0 {
		out.targets = []v1alpha1.Target{{Name: v1alpha1.DefaultTarget}}
	}
	return out, nil
}

// read takes in the file after it has been looked at as the same application without a file would be.
func (p *plan) read(file *pipecd.Application) error {
	spec := &file.Spec
	p.delivery = &v1alpha1.RevisionDelivery{
		Targets: spec.Targets, Pipeline: spec.Pipeline, Planner: spec.Planner, Rollback: spec.Rollback, Traffic: spec.Traffic, Service: spec.Service,
		Plugins:   spec.Plugins,
		Workloads: spec.Workloads, VariantLabel: spec.VariantLabel, Drift: spec.Drift, Prune: file.Prune, Labels: file.Labels,
	}
	if err := p.register(file); err != nil {
		return err
	}
	if trigger := spec.Trigger; len(trigger.Paths)+len(trigger.Ignores) > 0 {
		p.delivery.Trigger = &v1alpha1.RevisionTrigger{Paths: trigger.Paths, Ignores: trigger.Ignores}
	}
	whole := p.app.DeepCopy()
	whole.Spec = read.With(p.app.Spec, p.delivery)
	v1alpha1.SetObjectDefaults_Application(whole)
	errs := append(validation.ValidateApplication(whole), validation.ValidateTargets(&whole.Spec)...)
	errs = append(errs, secrets.Unstated(&p.app.Spec, read.StagesOf(whole.Spec), field.NewPath("spec", "pipeline", "stages"))...)
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", sources.ErrFile, errs.ToAggregate())
	}
	for _, field := range append(slices.Clone(file.Unhonoured), file.Otherwise(&p.app.ObjectMeta)...) {
		p.undone = append(p.undone, field.String())
	}
	p.undone = append(p.undone, read.Overridden(p.app.Spec, p.delivery)...)
	if spec.Trigger.Mode == v1alpha1.TriggerManual && p.app.Spec.Trigger.Mode != v1alpha1.TriggerManual {
		p.undone = append(p.undone, "trigger.onCommit.disabled is not honoured: set spec.trigger.mode of the Application to Manual")
	}
	return nil
}

// register finds the targets of the file among those of the application, and refuses others: where an application may go is for who writes it to say.
func (p *plan) register(file *pipecd.Application) error {
	own, named := p.app.Spec.Targets, file.Spec.Targets
	if len(own) == 0 {
		return nil
	}
	p.registered = read.Register(own, named)
	var known []string
	for i := range own {
		known = append(known, own[i].Name)
	}
	var errs field.ErrorList
	for _, i := range p.registered.Unknown {
		errs = append(errs, field.Invalid(field.NewPath(file.Named[named[i].Name]), named[i].Name,
			fmt.Sprintf("is none of spec.targets of the Application, which has %s: add it there, or take it out of the file", text.Line(strings.Join(known, ", "), mostNames))))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", sources.ErrFile, errs.ToAggregate())
	}
	return nil
}

// inputOf is what the file says of how a target alone is rendered.
func (p *plan) inputOf(target *v1alpha1.Target) pipecd.Input {
	name := target.Name
	if i, has := p.registered.Files[name]; has {
		name = p.found.File.Spec.Targets[i].Name
	}
	return p.found.File.Inputs[name]
}

// undoneDrift says what is asked for about drift and nobody does: objects that users apply themselves are theirs to put back.
func (p *plan) undoneDrift() []string {
	if p.app.Spec.Source.Selector == nil || p.app.Spec.Drift == nil || !p.app.Spec.Drift.Heal {
		return nil
	}
	return []string{"spec.drift.heal is not honoured: what spec.source.selector selects is for those to put back who apply it"}
}

// honoured reports whether all is done that the file and the application ask for.
func (p *plan) honoured() *metav1.Condition {
	if len(p.undone) == 0 {
		return condition(v1alpha1.ApplicationHonoured, metav1.ConditionTrue, reasonHonoured, "")
	}
	return condition(v1alpha1.ApplicationHonoured, metav1.ConditionFalse, reasonUnhonoured, text.Line(strings.Join(p.undone, "; "), mostSaid*4))
}

// rendering counts changes of this program by which the same files come out otherwise.
const rendering = "1"

// key tells states of the source, and of all else that the result follows from, apart.
func (p *plan) key() string { return shortHash(p.found.Key) + "-" + p.manner() }

// sameManner reports whether a revision was made from the source in the same manner, so that it can only be the source by which the next one differs.
func (p *plan) sameManner(revision *v1alpha1.ApplicationRevision) bool {
	_, manner, _ := strings.Cut(revision.Annotations[v1alpha1.AnnotationSource], "-")
	return manner == p.manner()
}

// manner tells apart all but the source that the result follows from.
func (p *plan) manner() string {
	type part struct {
		Name, Path string
		Patches    []v1alpha1.Patch
	}
	parts := make([]part, 0, len(p.targets))
	for i := range p.targets {
		parts = append(parts, part{p.targets[i].Name, p.targets[i].Path, p.targets[i].Patches})
	}
	made := []any{rendering, parts, p.app.Spec.ServiceAccountName != ""}
	if git := p.app.Spec.Source.Git; git != nil {
		made = append(made, git.URL, git.Path)
		if git.Pipecd != nil {
			made = append(made, git.Pipecd) // the file is read by it
		}
	}
	if p.copies.Labelled {
		made = append(made, p.copies)
	}
	if len(p.app.Spec.Plugins) > 0 {
		made = append(made, p.app.Spec.Plugins, p.app.Spec.PluginsOnly, p.paths)
	}
	if p.changes.Selects || len(p.changes.Services) > 0 {
		made = append(made, p.copies, p.changes)
	}
	return shortHash(marshalled(made))
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// folder is where the manifests of a target are, from the root of the repository.
func (p *plan) folder(target *v1alpha1.Target) string {
	if git := p.app.Spec.Source.Git; git != nil {
		return path.Join(git.Path, target.Path)
	}
	return "."
}

// options say how a target is rendered.
func (p *plan) options(target *v1alpha1.Target) render.Options {
	out := render.Options{Namespace: p.app.Namespace, OtherNamespaces: true, Chart: render.Chart{Release: p.app.Name}} // other namespaces are refused by name
	for _, patch := range target.Patches {
		made := render.Patch{Patch: patch.Patch}
		if of := patch.Target; of != nil {
			made.Target = &render.Target{Group: of.Group, Version: of.Version, Kind: of.Kind, Name: of.Name, LabelSelector: of.LabelSelector}
		}
		out.Patches = append(out.Patches, made)
	}
	if p.found.File == nil {
		return out
	}
	input := p.found.File.Input
	out.Manifests = input.Manifests
	if own := p.inputOf(target); own.Manifests != nil {
		out.Manifests = own.Manifests
	}
	out.Chart.Path = sources.ChartFrom(p.folder(target), input.Chart.Path)
	out.Chart.ValuesFiles, out.Chart.APIVersions, out.Chart.KubeVersion = input.Chart.ValuesFiles, input.Chart.APIVersions, input.Chart.KubeVersion
	if input.Chart.Release != "" {
		out.Chart.Release = input.Chart.Release
	}
	return out
}
