package oam

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// DefaultDrain is how long what gets no more requests stays, where the spec does not say.
const DefaultDrain = 30 * time.Second

// longestVariant bounds the names of variants: those of policies are made of them, which labels carry.
const longestVariant = 20

// Deployment is a spec as values.
type Deployment struct {
	Revisions []Revision
	Rules     []Rule
	Hosts     []string
	Gateways  []string
	Mode      Mode
	Drain     time.Duration
}

// Revision is one version of the application.
type Revision struct {
	// Name is what the spec calls it, and Variant what it is called in the names of objects.
	Name, Variant string
	// Application and Number tell the ApplicationRevision, or Kind, Workload and History the state of a workload.
	Application    string
	Number         int64
	Kind, Workload string
	History        int64

	Entries []Entry
	Host    string
	TLS     *TLS
}

// Native reports whether a revision is made of a workload and not of an ApplicationRevision.
func (r Revision) Native() bool { return r.Kind != "" }

// Component is the name by which clusters are picked, and the convention name of the Service in front of all revisions.
func (r Revision) Component() string {
	if r.Native() {
		return r.Workload
	}
	return r.Application
}

// Service is the convention name of the Service that leads to the revision alone.
func (r Revision) Service() string { return r.Component() + "-" + r.Variant }

// Reference names for people what the revision is made of.
func (r Revision) Reference() string {
	switch {
	case !r.Native():
		return v1alpha1.RevisionName(r.Application, r.Number)
	case r.History > 0:
		return fmt.Sprintf("%s/%s, revision %d", r.Kind, r.Workload, r.History)
	}
	return r.Kind + "/" + r.Workload
}

// Entry is a part of a revision.
type Entry struct {
	Selector ClusterSelector
	// Replicas is a number, or -1 where Weight says the share.
	Replicas int32
	Weight   int64
}

// Home reports whether an entry is for the cluster of the object itself.
func (e Entry) Home() bool { return e.Selector.Name == "" && len(e.Selector.Labels) == 0 }

// Rule shares out the requests to some paths.
type Rule struct {
	Name     string
	Prefixes []string
	Targets  []Target
}

// Target is the part of a revision. Percent is -1 where nothing is said.
type Target struct {
	Revision string
	Percent  int32
	Port     int32
}

// Read makes values of a spec, or says by paths what is wrong with it. The definition refuses most of that at admission already; whoever has another
// definition installed is told by a condition.
func Read(spec Spec) (Deployment, field.ErrorList) {
	r := reader{names: map[string]bool{}, variants: map[string]string{}}
	path := field.NewPath("spec")
	out := Deployment{Drain: DefaultDrain, Mode: spec.TrafficMode}
	if spec.DrainSeconds != nil {
		if *spec.DrainSeconds < 0 {
			r.errs = append(r.errs, field.Invalid(path.Child("drainSeconds"), *spec.DrainSeconds, "must not be negative"))
		}
		out.Drain = time.Duration(*spec.DrainSeconds) * time.Second
	}
	for i := range spec.AppRevisions {
		out.Revisions = append(out.Revisions, r.revision(&spec.AppRevisions[i], path.Child("appRevisions").Index(i)))
	}
	rules := map[string]bool{}
	for i := range spec.TrafficRules {
		at, rule := path.Child("trafficRules").Index(i), &spec.TrafficRules[i]
		if rule.Name != "" && rules[rule.Name] {
			r.errs = append(r.errs, field.Duplicate(at.Child("name"), rule.Name))
		}
		rules[rule.Name] = true
		out.Rules = append(out.Rules, r.rule(rule, at))
	}
	if of := spec.Traffic; of != nil {
		if len(of.HTTP) > 0 && len(spec.TrafficRules) > 0 {
			r.errs = append(r.errs, field.Forbidden(path.Child("traffic", "http"), "trafficRules are given as well, and mean the same: leave one of them out"))
		}
		for i := range of.HTTP {
			out.Rules = append(out.Rules, r.rule(&of.HTTP[i], path.Child("traffic", "http").Index(i)))
		}
		out.Hosts, out.Gateways = slices.Clone(of.Hosts), slices.Clone(of.Gateways)
	}
	out.Mode = r.mode(out, path)
	return out, r.errs
}

// reader gathers what is wrong.
type reader struct {
	errs     field.ErrorList
	names    map[string]bool
	variants map[string]string
	app      string
}

func (r *reader) revision(in *AppRevision, path *field.Path) Revision {
	out := Revision{Name: in.RevisionName}
	if in.Name != nil {
		out.Name = in.Name.String()
	}
	if problems := validation.IsDNS1123Label(out.Name); len(problems) > 0 {
		r.errs = append(r.errs, field.Invalid(path.Child("name"), out.Name, problems[0]))
	}
	if r.names[out.Name] {
		r.errs = append(r.errs, field.Duplicate(path.Child("name"), out.Name))
	}
	r.names[out.Name] = true
	r.refer(in, &out, path)
	if other, taken := r.variants[out.Variant]; taken && out.Variant != "" {
		r.errs = append(r.errs, field.Duplicate(path.Child("reference"), fmt.Sprintf("%s, which revision %s is as well", out.Reference(), other)))
	}
	r.variants[out.Variant] = out.Name
	out.Entries = r.entries(in.Placement, path.Child("placement"))
	if in.Service != nil && in.Service.HTTP != nil {
		out.Host, out.TLS = in.Service.HTTP.Host, in.Service.HTTP.TLS
		at := path.Child("service", "http")
		if problems := validation.IsDNS1123Subdomain(out.Host); out.Host != "" && len(problems) > 0 {
			r.errs = append(r.errs, field.Invalid(at.Child("host"), out.Host, problems[0]))
		}
		if out.TLS != nil && out.Host == "" {
			r.errs = append(r.errs, field.Required(at.Child("host"), "tls is about a host"))
		}
		if out.TLS != nil && out.TLS.Mode != "" && !slices.Contains([]string{"simple", "mutual"}, strings.ToLower(out.TLS.Mode)) {
			r.errs = append(r.errs, field.NotSupported(at.Child("tls", "mode"), out.TLS.Mode, []string{"simple", "mutual"}))
		}
	}
	return out
}

// refer reads what a revision is made of.
func (r *reader) refer(in *AppRevision, out *Revision, path *field.Path) {
	ref, at := r.reference(in, path)
	if ref == nil {
		return
	}
	switch ref.Kind {
	case "", "ApplicationRevision", "AppRevision":
		application, number, is := v1alpha1.ParseRevisionName(ref.Name)
		if !is || len(validation.IsDNS1123Label(application)) > 0 {
			r.errs = append(r.errs, field.Invalid(at, ref.Name, "revisions are called APPLICATION-vNUMBER: kubectl get applicationrevisions"))
			return
		}
		if r.app != "" && r.app != application {
			r.errs = append(r.errs, field.Invalid(at, ref.Name, fmt.Sprintf("it is a revision of %s, and others are of %s: all must be of one application", application, r.app)))
		}
		r.app, out.Application, out.Number, out.Variant = application, application, number, fmt.Sprintf("v%d", number)
	case "Deployment", "StatefulSet":
		r.workload(ref, out, at, path.Child("name"))
	default:
		r.errs = append(r.errs, field.NotSupported(at.Child("kind"), ref.Kind, []string{"ApplicationRevision", "Deployment", "StatefulSet"}))
	}
}

// reference is the one of the spellings that is given, nil if there is none or more.
func (r *reader) reference(in *AppRevision, path *field.Path) (*Reference, *field.Path) {
	ref, at, given := (*Reference)(nil), path.Child("reference"), 0
	if in.RevisionName != "" {
		ref, at, given = &Reference{Name: in.RevisionName}, path.Child("revisionName"), given+1
	}
	if in.Ref != nil {
		ref, at, given = in.Ref, path.Child("ref"), given+1
	}
	if in.Reference != nil {
		ref, at, given = in.Reference, path.Child("reference"), given+1
	}
	switch {
	case given == 0:
		r.errs = append(r.errs, field.Required(at, "the name of an ApplicationRevision, such as web-v1"))
		return nil, at
	case given > 1:
		r.errs = append(r.errs, field.Forbidden(at, "reference, ref and revisionName mean the same: give one of them"))
		return nil, at
	}
	return ref, at
}

// workload reads a revision that is a state of a workload. Its name, of which path is the field, is what the copies are called by.
func (r *reader) workload(ref *Reference, out *Revision, at, path *field.Path) {
	if problems := validation.IsDNS1123Label(ref.Name); len(problems) > 0 {
		r.errs = append(r.errs, field.Invalid(at.Child("name"), ref.Name, problems[0]))
		return
	}
	out.Kind, out.Workload, out.History, out.Variant = ref.Kind, ref.Name, ref.Revision, out.Name
	if out.Name != "" && out.Name[0] >= '0' && out.Name[0] <= '9' {
		out.Variant = "v" + out.Name
	}
	if len(out.Variant) > longestVariant {
		r.errs = append(r.errs, field.TooLong(path, "", longestVariant))
	}
	if slices.Contains([]string{v1alpha1.VariantPrimary, v1alpha1.VariantCanary, v1alpha1.VariantBaseline}, out.Variant) {
		r.errs = append(r.errs, field.Invalid(path, out.Name, "variants of Applications are called that: choose another name"))
	}
	if ref.Revision < 0 {
		r.errs = append(r.errs, field.Invalid(at.Child("revision"), ref.Revision, "must be a revision of the workload, as kubectl rollout history shows it"))
	}
}

// whole is the weight of an entry that says nothing.
const whole = 100

func (r *reader) entries(in []Placement, path *field.Path) []Entry {
	if len(in) == 0 {
		return []Entry{{Replicas: -1, Weight: whole}}
	}
	var out []Entry
	counted, weighed, weights := 0, 0, int64(0)
	for i, placement := range in {
		entry, at := Entry{Replicas: -1, Weight: whole}, path.Index(i).Child("distribution")
		if placement.ClusterSelector != nil {
			entry.Selector = *placement.ClusterSelector
		}
		if of := placement.Distribution; of != nil {
			switch {
			case of.Weight != nil && of.Replicas != nil:
				r.errs = append(r.errs, field.Forbidden(at, "weight and replicas exclude each other"))
			case of.Weight != nil && *of.Weight < 0:
				r.errs = append(r.errs, field.Invalid(at.Child("weight"), *of.Weight, "must not be negative"))
			case of.Weight != nil:
				entry.Weight = int64(*of.Weight)
			case of.Replicas != nil && (*of.Replicas < 0 || *of.Replicas > mostReplicas):
				r.errs = append(r.errs, field.Invalid(at.Child("replicas"), *of.Replicas, fmt.Sprintf("must be from 0 to %d", mostReplicas)))
			case of.Replicas != nil:
				entry.Replicas, entry.Weight = *of.Replicas, 0
			}
		}
		if entry.Replicas >= 0 {
			counted++
		} else {
			weighed, weights = weighed+1, weights+entry.Weight
		}
		out = append(out, entry)
	}
	switch {
	case counted > 0 && weighed > 0:
		r.errs = append(r.errs, field.Invalid(path, "", "some entries have replicas, and some a weight or nothing: give all of them the same"))
	case weighed > 0 && weights == 0:
		r.errs = append(r.errs, field.Invalid(path, "", "all weights are 0, so nobody has the replicas"))
	}
	return out
}

// mostReplicas bounds what a slip of the pen can ask for.
const mostReplicas = 100_000

func (r *reader) rule(in *TrafficRule, path *field.Path) Rule {
	out := Rule{Name: in.Name}
	for i, match := range in.Match {
		if match.URI == nil || !strings.HasPrefix(match.URI.Prefix, "/") {
			r.errs = append(r.errs, field.Invalid(path.Child("match").Index(i).Child("uri", "prefix"), "", `must begin with "/"`))
			continue
		}
		out.Prefixes = append(out.Prefixes, match.URI.Prefix)
	}
	sum, given, named := int32(0), 0, map[string]bool{}
	for i, target := range in.WeightedTargets {
		at := path.Child("weightedTargets").Index(i)
		name := target.RevisionName.String()
		made := Target{Revision: name, Percent: -1, Port: target.Port}
		if !r.names[name] {
			r.errs = append(r.errs, field.Invalid(at.Child("revisionName"), name, "appRevisions has no revision of this name"))
		}
		if named[name] {
			r.errs = append(r.errs, field.Duplicate(at.Child("revisionName"), name))
		}
		named[name] = true
		percent := target.Percent
		if percent != nil && target.Weight != nil {
			r.errs = append(r.errs, field.Forbidden(at.Child("weight"), "percent is given as well, and means the same"))
		}
		if percent == nil {
			percent = target.Weight
		}
		if percent != nil {
			if *percent < 0 || *percent > 100 {
				r.errs = append(r.errs, field.Invalid(at.Child("percent"), *percent, "must be from 0 to 100"))
			}
			made.Percent = *percent
			sum, given = sum+*percent, given+1
		}
		out.Targets = append(out.Targets, made)
	}
	at := path.Child("weightedTargets")
	switch {
	case len(out.Targets) == 0:
		r.errs = append(r.errs, field.Required(at, "a rule sends requests to revisions"))
	case given > 0 && given < len(out.Targets):
		r.errs = append(r.errs, field.Invalid(at, "", "some targets have a percent, and some have none: give it to all of them, or in Ingress mode to none"))
	case given > 0 && sum != 100:
		r.errs = append(r.errs, field.Invalid(at, sum, "the percents must add up to 100"))
	}
	return out
}

// mode is how requests are shared out: as the spec says, or by what its rules say. A path for each revision has no percents.
func (r *reader) mode(of Deployment, path *field.Path) Mode {
	with, without := 0, 0
	for _, rule := range of.Rules {
		if len(rule.Targets) > 0 && rule.Targets[0].Percent >= 0 {
			with++
		} else {
			without++
		}
	}
	at := path.Child("trafficRules")
	switch {
	case of.Mode == Ingress && with > 0:
		r.errs = append(r.errs, field.Forbidden(at, "an Ingress gives each revision a path and has no percent: leave it out, or set trafficMode to Istio"))
	case of.Mode == Istio && without > 0:
		r.errs = append(r.errs, field.Required(at, "Istio shares out by percent: give it to all targets, or set trafficMode to Ingress"))
	case with > 0 && without > 0:
		r.errs = append(r.errs, field.Invalid(at, "", "some rules have percents, and some have none: all must be shared out in the same way"))
	case of.Mode != "" && of.Mode != Istio && of.Mode != Ingress:
		r.errs = append(r.errs, field.NotSupported(path.Child("trafficMode"), of.Mode, []Mode{Istio, Ingress}))
	case of.Mode == "" && with > 0:
		return Istio
	case of.Mode == "":
		return Ingress
	}
	return of.Mode
}
