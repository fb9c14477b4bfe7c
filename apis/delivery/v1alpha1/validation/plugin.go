package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Bounds of what a plugin may hold.
const (
	longestPluginURL = 2048
	// mostPluginConfig bounds all that a plugin is configured with. It is handed over in one argument, of which Linux takes 128 KiB.
	mostPluginConfig  = 96 << 10
	mostPluginTargets = 500
	mostTargetLabels  = 100
	lowestPort        = 1024 // below, ports are for the system
	highestPort       = 65535
	longestGrace      = 3600
	fewestFiles       = 64
	mostFiles         = 1 << 20
	fewestProcesses   = 16
	mostProcesses     = 1 << 16
)

// leastMemory is what a program of Go needs to begin: the kernel counts what it sets aside for its heap.
var leastMemory = resource.MustParse("128Mi")

var (
	checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// ociPath is what follows the registry: a repository with a tag, a digest, or both.
	ociPath = regexp.MustCompile(`^/[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)
)

// ValidatePlugin refuses a new plugin that is not valid.
func ValidatePlugin(plugin *v1alpha1.Plugin) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&plugin.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	return append(errs, validatePluginSpec(plugin.Name, &plugin.Spec, field.NewPath("spec"))...)
}

// ValidatePluginUpdate refuses a change of the metadata or the spec that is not valid. A spec that stays is not looked at.
func ValidatePluginUpdate(plugin, old *v1alpha1.Plugin) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&plugin.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if apiequality.Semantic.DeepEqual(plugin.Spec, old.Spec) {
		return errs
	}
	return append(errs, validatePluginSpec(plugin.Name, &plugin.Spec, field.NewPath("spec"))...)
}

// ValidatePluginStatusUpdate refuses a status that cannot be true.
func ValidatePluginStatusUpdate(plugin, old *v1alpha1.Plugin) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&plugin.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, metav1validation.ValidateConditions(plugin.Status.Conditions, field.NewPath("status", "conditions"))...)
}

func validatePluginSpec(name string, spec *v1alpha1.PluginSpec, at *field.Path) field.ErrorList {
	errs := validateProgram(spec.URL, at.Child("url"))
	errs = append(errs, validateLogin(spec, at.Child("secretRef"))...)
	errs = append(errs, validatePipecdName(spec.PipecdName, name, at.Child("pipecdName"))...)
	switch {
	case spec.Sha256 == "":
		errs = append(errs, field.Required(at.Child("sha256"), "the checksum of the program, as sha256sum prints it: nothing runs without one"))
	case !checksum.MatchString(spec.Sha256):
		errs = append(errs, field.Invalid(at.Child("sha256"), spec.Sha256, "must be 64 hexadecimal digits in lower case"))
	}
	errs = append(errs, validateOpaque(spec.Config, at.Child("config"))...)
	errs = append(errs, validatePluginTargets(spec.DeployTargets, at.Child("deployTargets"))...)
	if size := configured(spec); size > mostPluginConfig {
		errs = append(errs, field.Invalid(at, size, fmt.Sprintf("config and deployTargets have this many bytes and must not have more than %d: a plugin gets them in one argument",
			mostPluginConfig)))
	}
	if spec.Port != 0 {
		errs = append(errs, fields.Between(spec.Port, at.Child("port"), lowestPort, highestPort, fmt.Sprintf("must be from %d to %d", lowestPort, highestPort))...)
	}
	errs = append(errs, fields.OneOf(spec.LogLevel, at.Child("logLevel"), v1alpha1.PluginLogDebug, v1alpha1.PluginLogInfo, v1alpha1.PluginLogWarn,
		v1alpha1.PluginLogError)...)
	if grace := spec.GracePeriodSeconds; grace != nil {
		errs = append(errs, fields.Between(*grace, at.Child("gracePeriodSeconds"), 1, longestGrace, fmt.Sprintf("must be from 1 to %d", longestGrace))...)
	}
	return append(errs, validatePluginLimits(&spec.Limits, at.Child("limits"))...)
}

// validateProgram refuses addresses of which no program can come, and those that hold credentials, which all who may read the plugin would see,
// without repeating them.
func validateProgram(address string, at *field.Path) field.ErrorList {
	if address == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(address) > longestPluginURL {
		return field.ErrorList{field.TooLong(at, "", longestPluginURL)}
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return field.ErrorList{field.Invalid(at, "", "must be a URL")}
	}
	if parsed.User != nil {
		return field.ErrorList{field.Forbidden(at, "may not hold credentials, which everybody could read who may read the plugin")}
	}
	if parsed.Fragment != "" {
		return field.ErrorList{field.Invalid(at, address, "must not have a fragment")}
	}
	switch parsed.Scheme {
	case "file":
		return validateFile(parsed, at)
	case "https", "http":
		if parsed.Host == "" || strings.Trim(parsed.Path, "/") == "" {
			return field.ErrorList{field.Invalid(at, address, "must name a host and a file")}
		}
	case "oci":
		return validateImage(parsed, at)
	default:
		return field.ErrorList{field.NotSupported(at, parsed.Scheme, []string{"file", "http", "https", "oci"})}
	}
	return nil
}

// validateLogin refuses a login that nobody would be told, or that everybody could read on the way.
func validateLogin(spec *v1alpha1.PluginSpec, at *field.Path) field.ErrorList {
	if spec.SecretRef == nil {
		return nil
	}
	errs := fields.Name(spec.SecretRef.Name, at.Child("name"), validation.IsDNS1123Subdomain)
	if scheme, _, _ := strings.Cut(spec.URL, "://"); scheme == "http" || scheme == "file" {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("is for URLs of https and oci; one of %s %s", scheme, map[string]string{
			"http": "would show the login to everybody on the way", "file": "needs none",
		}[scheme])))
	}
	return errs
}

// pipecdName is how PipeCD lets plugins be called that objects cannot be called as.
var pipecdName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// validatePipecdName refuses names by which files would not find the plugin: they find it by the name of the object that theirs comes to.
func validatePipecdName(written, name string, at *field.Path) field.ErrorList {
	switch {
	case written == "":
	case !pipecdName.MatchString(written):
		return field.ErrorList{field.Invalid(at, written, "must be at most 63 letters, digits, underscores and hyphens")}
	case name != "" && v1alpha1.PluginNameOf(written) != name:
		return field.ErrorList{field.Invalid(at, written, fmt.Sprintf("must be the name of the plugin, %s, but for capitals and for underscores in place of hyphens", name))}
	}
	return nil
}

func validateFile(parsed *url.URL, at *field.Path) field.ErrorList {
	switch {
	case parsed.Host != "" || parsed.Opaque != "":
		return field.ErrorList{field.Invalid(at, parsed.String(), "must name an absolute path on the server's own disk, with three slashes, such as file:///opt/plugins/wait")}
	case parsed.RawQuery != "":
		return field.ErrorList{field.Invalid(at, parsed.String(), "must not have a query")}
	case parsed.Path != path.Clean(parsed.Path) || parsed.Path == "/" || !path.IsAbs(parsed.Path) || strings.ContainsRune(parsed.Path, 0):
		return field.ErrorList{field.Invalid(at, parsed.String(), "must name a file by its shortest absolute path, such as file:///opt/plugins/wait")}
	}
	return nil
}

func validateImage(parsed *url.URL, at *field.Path) field.ErrorList {
	last := parsed.Path[strings.LastIndex(parsed.Path, "/")+1:]
	switch {
	case parsed.Host == "" || parsed.RawQuery != "" || !ociPath.MatchString(parsed.Path):
		return field.ErrorList{field.Invalid(at, parsed.String(), "must name a registry and a repository, such as oci://registry.example/plugins/wait:v0.1.1")}
	case !strings.ContainsAny(last, ":@"):
		return field.ErrorList{field.Invalid(at, parsed.String(), "must have a tag or a digest, such as oci://registry.example/plugins/wait:v0.1.1")}
	}
	return nil
}

// validateOpaque refuses what is no object. Unset is fine.
func validateOpaque(config *runtime.RawExtension, at *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var content map[string]json.RawMessage
	if err := json.Unmarshal(config.Raw, &content); err != nil || content == nil {
		return field.ErrorList{field.Invalid(at, "", "must be an object")}
	}
	return nil
}

func validatePluginTargets(targets []v1alpha1.PluginTarget, at *field.Path) field.ErrorList {
	if len(targets) > mostPluginTargets {
		return field.ErrorList{field.TooMany(at, len(targets), mostPluginTargets)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range targets {
		target, at := &targets[i], at.Index(i)
		// The names of deploy targets are PipeCD's, and not bound to be DNS labels.
		errs = append(errs, fields.Name(target.Name, at.Child("name"), validation.IsValidLabelValue)...)
		if seen[target.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), target.Name))
		}
		seen[target.Name] = true
		if len(target.Labels) > mostTargetLabels {
			errs = append(errs, field.TooMany(at.Child("labels"), len(target.Labels), mostTargetLabels))
		}
		if _, unnamed := target.Labels[""]; unnamed {
			errs = append(errs, field.Required(at.Child("labels").Key(""), "a label has a key"))
		}
		errs = append(errs, validateOpaque(target.Config, at.Child("config"))...)
		errs = append(errs, validateTargetClusters(target, at)...)
	}
	return errs
}

// validateTargetClusters refuses targets that stand for clusters without saying by whose rights, and others that say so.
func validateTargetClusters(target *v1alpha1.PluginTarget, at *field.Path) field.ErrorList {
	account, ref := target.ServiceAccountRef, at.Child("serviceAccountRef")
	if target.ClusterSelector == nil {
		if account != nil {
			return field.ErrorList{field.Forbidden(ref, "is for targets that stand for clusters: give them by clusterSelector")}
		}
		return nil
	}
	errs := fields.Selector(target.ClusterSelector, at.Child("clusterSelector"))
	if target.Config != nil {
		var content map[string]json.RawMessage
		_ = json.Unmarshal(target.Config.Raw, &content) // what is no object was refused
		if _, says := content[v1alpha1.PluginKubeconfigField]; says {
			errs = append(errs, field.Forbidden(at.Child("config", v1alpha1.PluginKubeconfigField), "the server writes a kubeconfig for each cluster, and its path here"))
		}
	}
	if account == nil {
		return append(errs, field.Required(ref, "say by the rights of which ServiceAccount the plugin works in the clusters"))
	}
	errs = append(errs, fields.Name(account.Name, ref.Child("name"), validation.IsDNS1123Subdomain)...)
	errs = append(errs, fields.Name(account.Namespace, ref.Child("namespace"), validation.IsDNS1123Label)...)
	if slices.Contains(manifold.ProtectedNamespaces(), account.Namespace) {
		errs = append(errs, field.Forbidden(ref.Child("namespace"), "nothing of the logical cluster works by the rights of Kubernetes' own accounts, or Manifold's"))
	}
	return errs
}

// configured is the number of bytes that a plugin is configured with.
func configured(spec *v1alpha1.PluginSpec) int {
	size := 0
	add := func(config *runtime.RawExtension) {
		var compact bytes.Buffer
		if config != nil && json.Compact(&compact, config.Raw) == nil {
			size += compact.Len()
		}
	}
	add(spec.Config)
	for i := range spec.DeployTargets {
		target := &spec.DeployTargets[i]
		size += len(target.Name)
		for key, value := range target.Labels {
			size += len(key) + len(value)
		}
		add(target.Config)
	}
	return size
}

func validatePluginLimits(limits *v1alpha1.PluginLimits, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if memory := limits.Memory; memory != nil && memory.Cmp(leastMemory) < 0 {
		errs = append(errs, field.Invalid(at.Child("memory"), memory.String(), "must be at least "+leastMemory.String()))
	}
	for _, limit := range []struct {
		field           string
		value           *int64
		lowest, highest int64
	}{{"files", limits.Files, fewestFiles, mostFiles}, {"processes", limits.Processes, fewestProcesses, mostProcesses}} {
		if limit.value != nil {
			errs = append(errs, fields.Between(*limit.value, at.Child(limit.field), limit.lowest, limit.highest,
				fmt.Sprintf("must be from %d to %d", limit.lowest, limit.highest))...)
		}
	}
	return errs
}

// PluginWarnings says what of a plugin is valid and less safe than it could be.
func PluginWarnings(plugin *v1alpha1.Plugin) []string {
	if strings.HasPrefix(plugin.Spec.URL, "http:") {
		return []string{"spec.url: who is on the way reads and changes what comes by http; the checksum keeps what was changed from running, and nothing keeps it from being read"}
	}
	return nil
}
