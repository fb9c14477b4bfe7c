package weave

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of a pipeline. Each target is watched, and has a part of the status.
const (
	MostEnvironments = 32
	// MostTargets is how many targets all environments have together.
	MostTargets = 256

	mostTargetsOfOne   = 64
	longestEnvironment = 63
	longestURL         = 2048
	longestBranch      = 244
	longestPath        = 1024
)

// Read makes a value of an object of either group, whatever its spec says: Validate tells what is wrong with that.
func Read(object *unstructured.Unstructured) (*Pipeline, error) {
	kind := object.GroupVersionKind()
	if kind.Kind != Kind || !slices.Contains(GroupVersions, kind.GroupVersion()) {
		return nil, fmt.Errorf("%s is no %s of %s or %s", kind, Kind, GroupVersions[0], GroupVersions[1])
	}
	out := &Pipeline{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return out, nil
}

// Older reports whether a pipeline is of the group where workloads carry a label.
func (p *Pipeline) Older() bool {
	gv, err := schema.ParseGroupVersion(p.APIVersion)
	return err == nil && gv.Group == OlderGroup
}

// PromotionOf says how an environment gets a version: as it says itself, or as its pipeline does. It is nil where nothing is promoted.
func (p *Pipeline) PromotionOf(e Environment) *Promotion {
	if e.Promotion != nil {
		return e.Promotion
	}
	return p.Spec.Promotion
}

// Cluster is the name of the Cluster that a target is in, "" for the logical cluster. The namespace of a reference does not matter: Clusters are in none, and
// a GitopsCluster is the Cluster of its name, wherever it is and whether there is one or not.
func (t Target) Cluster() string {
	if t.ClusterRef == nil {
		return ""
	}
	return t.ClusterRef.Name
}

// clusterGroups are the groups of the kinds that a clusterRef may name.
var clusterGroups = map[string]string{KindGitopsCluster: GitopsClusters.Group, KindCluster: "manifold.dev"}

// Validate says by paths what is wrong with a spec. The definitions refuse most of that at admission already; whoever has others installed, such as Weave's, is
// told the same.
func Validate(p *Pipeline) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateApp(p, path.Child("appRef"))
	// The names of the older group's pipelines are values of labels.
	if p.Older() {
		for _, problem := range validation.IsValidLabelValue(p.Name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), p.Name, "workloads carry it as a label: "+problem))
		}
	}
	errs = append(errs, validateEnvironments(p.Spec.Environments, path.Child("environments"))...)
	return append(errs, validatePromotion(p.Spec.Promotion, path.Child("promotion"))...)
}

func validateApp(p *Pipeline, path *field.Path) field.ErrorList {
	app := p.Spec.AppRef
	switch {
	case p.Older() && app != nil:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("workloads are a part of it by the label %s; only pipelines of %s name an app", OlderPipelineLabel, GroupVersions[0]))}
	case p.Older():
		return nil
	case app == nil:
		return field.ErrorList{field.Required(path, "the app that the pipeline is of")}
	}
	var errs field.ErrorList
	for _, part := range []struct{ name, value string }{{"apiVersion", app.APIVersion}, {"kind", app.Kind}} {
		if part.value == "" {
			errs = append(errs, field.Required(path.Child(part.name), ""))
		}
	}
	errs = append(errs, validateName(app.Name, path.Child("name"), validation.IsDNS1123Subdomain)...)
	if _, known := WorkloadOf(*app); !known && app.APIVersion != "" && app.Kind != "" {
		var kinds []string
		for _, kind := range Workloads {
			kinds = append(kinds, kind.GroupKind.String())
		}
		gv, _ := schema.ParseGroupVersion(app.APIVersion) // what is no version is in no group of these
		errs = append(errs, field.NotSupported(path.Child("kind"), gv.WithKind(app.Kind).GroupKind().String(), kinds))
	}
	return errs
}

func validateName(name string, path *field.Path, check func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for _, problem := range check(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

// environmentName is what annotations, markers in files and addresses of webhooks carry.
var environmentName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

func checkEnvironmentName(name string) []string {
	if len(name) > longestEnvironment || !environmentName.MatchString(name) {
		return []string{fmt.Sprintf("must be at most %d letters, digits, '-', '_' and '.', and begin and end with a letter or digit", longestEnvironment)}
	}
	return nil
}

func validateEnvironments(environments []Environment, path *field.Path) field.ErrorList {
	switch {
	case len(environments) == 0:
		return field.ErrorList{field.Required(path, "a pipeline has at least one environment")}
	case len(environments) > MostEnvironments:
		return field.ErrorList{field.TooMany(path, len(environments), MostEnvironments)}
	}
	var errs field.ErrorList
	targets, names := 0, map[string]bool{}
	for i, e := range environments {
		at := path.Index(i)
		errs = append(errs, validateName(e.Name, at.Child("name"), checkEnvironmentName)...)
		if e.Name != "" && names[e.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), e.Name))
		}
		names[e.Name] = true
		errs = append(errs, validateTargets(e.Targets, at.Child("targets"))...)
		errs = append(errs, validatePromotion(e.Promotion, at.Child("promotion"))...)
		targets += len(e.Targets)
	}
	if targets > MostTargets {
		errs = append(errs, field.Invalid(path, targets, fmt.Sprintf("must have at most %d targets in all", MostTargets)))
	}
	return errs
}

// place is what a target comes down to.
type place struct{ cluster, namespace string }

func (t Target) place() place { return place{t.Cluster(), t.Namespace} }

func validateTargets(targets []Target, path *field.Path) field.ErrorList {
	switch {
	case len(targets) == 0:
		return field.ErrorList{field.Required(path, "an environment has at least one target")}
	case len(targets) > mostTargetsOfOne:
		return field.ErrorList{field.TooMany(path, len(targets), mostTargetsOfOne)}
	}
	var errs field.ErrorList
	there := map[place]bool{}
	for i, t := range targets {
		at := path.Index(i)
		found := validateName(t.Namespace, at.Child("namespace"), validation.IsDNS1123Label)
		if t.ClusterRef != nil {
			found = append(found, validateCluster(*t.ClusterRef, at.Child("clusterRef"))...)
		}
		if len(found) == 0 && there[t.place()] {
			said := fmt.Sprintf("namespace %q", t.Namespace)
			if cluster := t.Cluster(); cluster != "" {
				said += fmt.Sprintf(" of cluster %q", cluster)
			}
			found = append(found, field.Duplicate(at, said))
		}
		there[t.place()] = true
		errs = append(errs, found...)
	}
	return errs
}

func validateCluster(ref ClusterReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	group, known := clusterGroups[ref.Kind]
	switch {
	case ref.Kind == "":
		errs = append(errs, field.Required(path.Child("kind"), ""))
	case !known:
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, []string{KindGitopsCluster, KindCluster}))
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); known && ref.APIVersion != "" && (err != nil || gv.Group != group) {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), ref.APIVersion, fmt.Sprintf("a %s is of group %s: leave it out, or name that", ref.Kind, group)))
	}
	errs = append(errs, validateName(ref.Name, path.Child("name"), validation.IsDNS1123Label)...)
	if ref.Namespace != "" {
		errs = append(errs, validateName(ref.Namespace, path.Child("namespace"), validation.IsDNS1123Label)...)
	}
	return errs
}

func validatePromotion(p *Promotion, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	path = path.Child("strategy")
	given := 0
	var errs field.ErrorList
	if of := p.Strategy.PullRequest; of != nil {
		given++
		errs = append(errs, validatePullRequest(*of, path.Child("pull-request"))...)
	}
	if p.Strategy.Notification != nil {
		given++
	}
	if of := p.Strategy.Direct; of != nil {
		given++
		errs = append(errs, validateName(of.ServiceAccountName, path.Child("direct", "serviceAccountName"), validation.IsDNS1123Subdomain)...)
	}
	switch {
	case given == 0:
		errs = append(errs, field.Required(path, "one of pull-request, notification and direct"))
	case given > 1:
		errs = append(errs, field.Forbidden(path, "pull-request, notification and direct exclude each other: give one of them"))
	}
	if of := p.Strategy.SecretRef; of != nil {
		errs = append(errs, validateName(of.Name, path.Child("secretRef", "name"), validation.IsDNS1123Subdomain)...)
	}
	return errs
}

// Forges are the types of pull requests.
var Forges = []string{ForgeGitHub, ForgeGitLab, ForgeBitbucketServer, ForgeAzureDevOps, ForgeGitea}

var (
	// httpAddress has no user: that is a credential, or the beginning of one. sshAddress may have one, and no password.
	httpAddress = regexp.MustCompile(`^https?://[^\s/@?#\\]+/[^\s?#\\]+$`)
	sshAddress  = regexp.MustCompile(`^ssh://([^\s/@:?#\\]+@)?[^\s/@?#\\]+/[^\s?#\\]+$`)
	// branch is what git allows of the characters that people use.
	branch = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_./+#@=]*$`)
)

func validatePullRequest(p PullRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.Type == "":
		errs = append(errs, field.Required(path.Child("type"), ""))
	case !slices.Contains(Forges, p.Type):
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, Forges))
	}
	switch at := path.Child("url"); {
	case p.URL == "":
		errs = append(errs, field.Required(at, ""))
	case len(p.URL) > longestURL:
		errs = append(errs, field.TooLong(at, "", longestURL))
	case !httpAddress.MatchString(p.URL) && !sshAddress.MatchString(p.URL): // which may be for a password in it, so it is not repeated
		errs = append(errs, field.Invalid(at, "", "must be the address of a repository, as https://HOST/PATH or ssh://USER@HOST/PATH; credentials belong to the Secret that secretRef names"))
	}
	switch at := path.Child("baseBranch"); {
	case p.BaseBranch == "":
		errs = append(errs, field.Required(at, ""))
	case len(p.BaseBranch) > longestBranch || !branch.MatchString(p.BaseBranch) || strings.Contains(p.BaseBranch, "..") || strings.Contains(p.BaseBranch, "@{") ||
		strings.Contains(p.BaseBranch, "//") || strings.HasSuffix(p.BaseBranch, "/") || strings.HasSuffix(p.BaseBranch, ".") || strings.HasSuffix(p.BaseBranch, ".lock"):
		errs = append(errs, field.Invalid(at, p.BaseBranch, "must be the name of a branch, such as main"))
	}
	errs = append(errs, validatePath(p.Path, path.Child("path"))...)
	return append(errs, validateName(p.SecretRef.Name, path.Child("secretRef", "name"), validation.IsDNS1123Subdomain)...)
}

// validatePath keeps a folder within its repository.
func validatePath(folder string, at *field.Path) field.ErrorList {
	switch {
	case len(folder) > longestPath:
		return field.ErrorList{field.TooLong(at, "", longestPath)}
	case strings.HasPrefix(folder, "/") || strings.ContainsAny(folder, "\\\x00") || slices.Contains(strings.Split(folder, "/"), ".."):
		return field.ErrorList{field.Invalid(at, folder, `must be a folder within the repository: no "/" at its beginning, and no ".."`)}
	}
	return nil
}
