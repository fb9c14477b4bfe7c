package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

const (
	shortestInterval = 10 * time.Second
	longestPath      = 1024
	longestFile      = 255
	longestRange     = 250
	mostProviders    = 100
)

var (
	// scpAddress is how git writes addresses for SSH that are no URLs: USER@HOST:PATH.
	scpAddress = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/\s][^\s]*$`)
	// commitHash is that of SHA-1: repositories of SHA-256, whose hashes have 64 digits, cannot be read.
	commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)
	// refName leaves out what git leaves out, roughly: who made the name is told by git whether it is there.
	refName  = regexp.MustCompile(`^[^\s~^:?*\[\\\x00-\x1f\x7f-][^\s~^:?*\[\\\x00-\x1f\x7f]*$`)
	kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

func validateSource(source *v1alpha1.Source, namespace string, at *field.Path) field.ErrorList {
	var set []string
	var errs field.ErrorList
	if source.Git != nil {
		set = append(set, "git")
		errs = append(errs, validateGit(source.Git, at.Child("git"))...)
	}
	if source.Selector != nil {
		set = append(set, "selector")
		errs = append(errs, validateObjectSelector(source.Selector, at.Child("selector"))...)
	}
	if source.Inline != nil {
		set = append(set, "inline")
		errs = append(errs, validateInline(source.Inline, namespace, at.Child("inline"))...)
	}
	return append(exactlyOne(set, at, "git", "selector", "inline"), errs...)
}

// exactlyOne refuses fields of which none or several are set.
func exactlyOne(set []string, at *field.Path, choices ...string) field.ErrorList {
	switch len(set) {
	case 0:
		return field.ErrorList{field.Required(at, "exactly one of "+strings.Join(choices, ", ")+" must be set")}
	case 1:
		return nil
	}
	return field.ErrorList{field.Forbidden(at.Child(set[1]), "may not be combined with "+set[0])}
}

func validateGit(git *v1alpha1.GitSource, at *field.Path) field.ErrorList {
	errs := validateAddress(git.URL, at.Child("url"))
	errs = append(errs, validateRef(git.Ref, at.Child("ref"))...)
	errs = append(errs, validateFolder("", git.Path, at.Child("path"))...)
	if git.Interval != nil && git.Interval.Duration < shortestInterval {
		errs = append(errs, field.Invalid(at.Child("interval"), git.Interval.Duration.String(), "must be at least "+shortestInterval.String()))
	}
	if git.SecretRef != nil {
		errs = append(errs, fields.Name(git.SecretRef.Name, at.Child("secretRef", "name"), validation.IsDNS1123Subdomain)...)
	}
	if git.Webhook != nil {
		errs = append(errs, fields.Name(git.Webhook.SecretRef.Name, at.Child("webhook", "secretRef", "name"), validation.IsDNS1123Subdomain)...)
	}
	if git.Pipecd != nil {
		errs = append(errs, validatePipecd(git.Pipecd, at.Child("pipecd"))...)
	}
	return errs
}

func validatePipecd(config *v1alpha1.PipecdConfig, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if file := config.File; len(file) > longestFile {
		errs = append(errs, field.TooLong(at.Child("file"), "", longestFile))
	} else if file != "" && (!v1alpha1.IsPipecdFile(file) || strings.ContainsAny(file, "/\\\x00\n")) {
		errs = append(errs, field.Invalid(at.Child("file"), file, "must be the name of a file in the folder, NAME.pipecd.yaml or .pipe.yaml"))
	}
	providers, secrets := at.Child("analysisProviders"), at.Child("analysisSecrets")
	if len(config.AnalysisProviders) > mostProviders {
		errs = append(errs, field.TooMany(providers, len(config.AnalysisProviders), mostProviders))
	}
	for _, name := range slices.Sorted(maps.Keys(config.AnalysisProviders)) {
		if name == "" {
			errs = append(errs, field.Required(providers.Key(name), "a provider has a name"))
		}
		errs = append(errs, validateURL(config.AnalysisProviders[name], providers.Key(name))...)
	}
	for _, name := range slices.Sorted(maps.Keys(config.AnalysisSecrets)) {
		if _, known := config.AnalysisProviders[name]; !known {
			errs = append(errs, field.Forbidden(secrets.Key(name), "analysisProviders has no server of that name"))
			continue
		}
		errs = append(errs, fields.Name(config.AnalysisSecrets[name], secrets.Key(name), validation.IsDNS1123Subdomain)...)
	}
	return errs
}

// validateAddress refuses addresses that hold credentials, which all who may read the application would see, without repeating them.
func validateAddress(address string, at *field.Path) field.ErrorList {
	if address == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if scpAddress.MatchString(address) {
		return nil
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return field.ErrorList{field.Invalid(at, "", "must be a URL, or USER@HOST:PATH for SSH")}
	}
	if _, secret := parsed.User.Password(); secret || parsed.User != nil && parsed.Scheme != "ssh" {
		return field.ErrorList{field.Forbidden(at, "may not hold credentials, which belong to the Secret that secretRef names")}
	}
	schemes := []string{"https", "http", "ssh", "file"}
	if !slices.Contains(schemes, parsed.Scheme) {
		return field.ErrorList{field.NotSupported(at, parsed.Scheme, schemes)}
	}
	if parsed.Scheme != "file" && parsed.Host == "" || strings.Trim(parsed.Path, "/") == "" {
		return field.ErrorList{field.Invalid(at, address, "must name a host and a repository")}
	}
	return nil
}

func validateRef(ref *v1alpha1.GitRef, at *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	var set []string
	var errs field.ErrorList
	for _, name := range []struct{ field, value string }{{"branch", ref.Branch}, {"tag", ref.Tag}} {
		if name.value == "" {
			continue
		}
		set = append(set, name.field)
		if !refName.MatchString(name.value) || strings.Contains(name.value, "..") || strings.HasSuffix(name.value, "/") {
			errs = append(errs, field.Invalid(at.Child(name.field), name.value, "git has no such names"))
		}
	}
	if ref.Semver != "" {
		set = append(set, "semver")
		errs = append(errs, validateRange(ref.Semver, at.Child("semver"))...)
	}
	if ref.Commit != "" {
		set = append(set, "commit")
		if !commitHash.MatchString(ref.Commit) {
			errs = append(errs, field.Invalid(at.Child("commit"), ref.Commit, "must be the full hash of a commit, 40 hexadecimal digits in lower case"))
		}
	}
	if len(set) == 0 {
		return nil
	}
	return append(exactlyOne(set, at), errs...)
}

// validateRange refuses what is no range of versions.
func validateRange(text string, at *field.Path) field.ErrorList {
	if len(text) > longestRange {
		return field.ErrorList{field.TooLong(at, "", longestRange)}
	}
	if _, err := semver.NewConstraint(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, `must be a range of versions, such as ">=1.2.0 <2.0.0": `+err.Error())}
	}
	return nil
}

// validateFolder refuses a folder that is not within the repository when it is taken from another one.
func validateFolder(from, folder string, at *field.Path) field.ErrorList {
	switch joined := path.Join(from, folder); {
	case len(folder) > longestPath:
		return field.ErrorList{field.TooLong(at, "", longestPath)}
	case path.IsAbs(folder):
		return field.ErrorList{field.Invalid(at, folder, "must be relative")}
	case strings.ContainsAny(folder, "\\\x00\n"):
		return field.ErrorList{field.Invalid(at, folder, "must be separated by slashes")}
	case joined == ".." || strings.HasPrefix(joined, "../"):
		return field.ErrorList{field.Invalid(at, folder, "must not leave the repository")}
	}
	return nil
}

// validateObjectSelector refuses a selector of everything: it would take in what nobody has meant.
func validateObjectSelector(selector *v1alpha1.ObjectSelector, at *field.Path) field.ErrorList {
	errs := fields.Selector(&selector.LabelSelector, at)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Required(at, "matchLabels or matchExpressions must be set"))
	}
	errs = append(errs, fields.Unique(selector.Kinds, at.Child("kinds"))...)
	for i, name := range selector.Kinds {
		kind, group, grouped := strings.Cut(name, ".")
		if !kindName.MatchString(kind) || grouped && len(validation.IsDNS1123Subdomain(group)) > 0 {
			errs = append(errs, field.Invalid(at.Child("kinds").Index(i), name, "must be KIND or KIND.GROUP, such as Deployment or Rollout.argoproj.io"))
		}
	}
	return errs
}

func validateInline(inline *v1alpha1.InlineSource, namespace string, at *field.Path) field.ErrorList {
	at = at.Child("objects")
	if len(inline.Objects) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range inline.Objects {
		manifest, problems := validateManifest(&inline.Objects[i], at.Index(i))
		errs = append(errs, problems...)
		if manifest == nil {
			continue
		}
		if in := manifest.GetNamespace(); in != "" && in != namespace {
			errs = append(errs, field.Invalid(at.Index(i).Child("metadata", "namespace"), in, "must be that of the application"))
		}
		id := fmt.Sprintf("%s %s", manifest.GroupVersionKind().GroupKind(), manifest.GetName())
		if seen[id] {
			errs = append(errs, field.Duplicate(at.Index(i), id))
		}
		seen[id] = true
	}
	return errs
}

// validateManifest returns the manifest unless it is refused as something that is no object with a name, or that is a Secret.
func validateManifest(raw *runtime.RawExtension, at *field.Path) (*unstructured.Unstructured, field.ErrorList) {
	var content map[string]any
	if err := json.Unmarshal(raw.Raw, &content); err != nil || content == nil {
		return nil, field.ErrorList{field.Invalid(at, "", "must be an object")}
	}
	object := &unstructured.Unstructured{Object: content}
	var errs field.ErrorList
	for _, part := range []struct {
		value string
		path  *field.Path
	}{
		{object.GetAPIVersion(), at.Child("apiVersion")}, {object.GetKind(), at.Child("kind")}, {object.GetName(), at.Child("metadata", "name")},
	} {
		if part.value == "" {
			errs = append(errs, field.Required(part.path, ""))
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if object.GetAPIVersion() == "v1" && object.GetKind() == "Secret" {
		return nil, field.ErrorList{field.Forbidden(at, "a Secret may not be here, where all may read it who may read the "+
			"object")}
	}
	return object, nil
}
