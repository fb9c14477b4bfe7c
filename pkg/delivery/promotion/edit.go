package promotion

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that versions are written into, beside those with pods.
var (
	helmRelease   = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}
	kustomization = schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}
	application   = schema.GroupKind{Group: "delivery.manifold.dev", Kind: "Application"}

	gitRepository = schema.GroupKind{Group: sourceGroup, Kind: "GitRepository"}
	ociRepository = schema.GroupKind{Group: sourceGroup, Kind: "OCIRepository"}
	helmChart     = schema.GroupKind{Group: sourceGroup, Kind: "HelmChart"}
)

const sourceGroup = "source.toolkit.fluxcd.io"

// templates are where kinds have the pods that they make.
var templates = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// KindOf returns the kind of a workload that a status names by a word alone.
func KindOf(name string) (schema.GroupKind, bool) {
	for kind := range templates {
		if kind.Kind == name {
			return kind, true
		}
	}
	for _, kind := range []schema.GroupKind{helmRelease, kustomization, application} {
		if kind.Kind == name {
			return kind, true
		}
	}
	return schema.GroupKind{}, false
}

// Reference is the object that has the version of another one.
type Reference struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// VersionIn returns which object has the version of a workload, and reports false if it has that itself.
func VersionIn(workload *unstructured.Unstructured) (Reference, bool) {
	var field string
	switch workload.GroupVersionKind().GroupKind() {
	case helmRelease:
		field = "chartRef"
	case kustomization:
		field = "sourceRef"
	default:
		return Reference{}, false
	}
	of, has, err := unstructured.NestedStringMap(workload.Object, "spec", field)
	if err != nil || !has {
		return Reference{}, false
	}
	out := Reference{Kind: schema.GroupKind{Group: sourceGroup, Kind: of["kind"]}, Namespace: of["namespace"], Name: of["name"]}
	if out.Namespace == "" {
		out.Namespace = workload.GetNamespace()
	}
	return out, true
}

// Edit writes a version into an object, and reports whether that changes anything.
func Edit(object *unstructured.Unstructured, version Version) (changed bool, err error) {
	kind := object.GroupVersionKind().GroupKind()
	before := object.DeepCopy()
	if template, pods := templates[kind]; pods {
		err = editPods(object, template, version)
	} else {
		err = editField(object, kind, version.Revision)
	}
	if err != nil {
		return false, fmt.Errorf("%s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return !equality.Semantic.DeepEqual(before.Object, object.Object), nil
}

func editField(object *unstructured.Unstructured, kind schema.GroupKind, revision string) error {
	switch kind {
	case helmRelease:
		return unstructured.SetNestedField(object.Object, revision, "spec", "chart", "spec", "version")
	case helmChart:
		return unstructured.SetNestedField(object.Object, revision, "spec", "version")
	case application:
		if _, git, _ := unstructured.NestedMap(object.Object, "spec", "source", "git"); !git {
			return errors.New("its source is no git repository, so that no revision of one can be written")
		}
		// Any other word may be the name of an ApplicationRevision, which means something else in every namespace.
		commit := commitOf(revision)
		if commit == "" {
			return fmt.Errorf("version %s names no commit that could be written: promote by pull-request or notification", revision)
		}
		return unstructured.SetNestedMap(object.Object, map[string]any{"commit": commit}, "spec", "source", "git", "ref")
	case gitRepository:
		commit := commitOf(revision)
		if commit == "" {
			return fmt.Errorf("revision %s names no commit", revision)
		}
		return unstructured.SetNestedField(object.Object, commit, "spec", "ref", "commit")
	case ociRepository:
		return editArtifact(object, revision)
	}
	return errors.New("no version can be written into one")
}

// digest is the end of revisions as Flux writes them.
var (
	digest = regexp.MustCompile(`(?:^|@)(sha256:[0-9a-f]{64})$`)
	commit = regexp.MustCompile(`(?:^|[@/])(?:sha1:|sha256:)?([0-9a-f]{64}|[0-9a-f]{40})$`)
)

// commitOf returns the commit that a revision of a repository names, as in "main@sha1:HASH", or "".
func commitOf(revision string) string {
	if match := commit.FindStringSubmatch(revision); match != nil {
		return match[1]
	}
	return ""
}

// editArtifact sets the tag and the digest of an artifact: the digest wins where both are given.
func editArtifact(object *unstructured.Unstructured, revision string) error {
	ref := map[string]any{}
	tag, _, _ := strings.Cut(revision, "@")
	if tag != "" && !digest.MatchString(tag) {
		ref["tag"] = tag
	}
	if match := digest.FindStringSubmatch(revision); match != nil {
		ref["digest"] = match[1]
	}
	return unstructured.SetNestedMap(object.Object, ref, "spec", "ref")
}

// editPods writes the images of a version into the containers of a template.
func editPods(object *unstructured.Unstructured, template []string, version Version) error {
	var all []*container
	lists := map[string][]any{}
	for _, field := range []string{"containers", "initContainers"} {
		path := append(slices.Clone(template), field)
		list, has, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		lists[field] = list
		for i := range list {
			fields, is := list[i].(map[string]any)
			if !is {
				return fmt.Errorf("%s[%d] is no object", strings.Join(path, "."), i)
			}
			image, _ := fields["image"].(string)
			all = append(all, newContainer(fields, image))
		}
	}
	if err := setImages(all, version); err != nil {
		return err
	}
	for field, list := range lists {
		if err := unstructured.SetNestedSlice(object.Object, list, append(slices.Clone(template), field)...); err != nil {
			return err
		}
	}
	return nil
}

// container is one with its image in parts.
type container struct {
	fields           map[string]any
	repository, rest string
}

func newContainer(fields map[string]any, image string) *container {
	repository, rest := SplitImage(image)
	return &container{fields, repository, rest}
}

func (c *container) set(rest string) { c.fields["image"] = c.repository + rest }

// tag is that of the container's image, or its digest where it has none.
func (c *container) tag() string {
	if tag := Tag(c.rest); tag != "" || c.rest == "" {
		return tag
	}
	return c.rest
}

func setImages(all []*container, version Version) error {
	if len(version.Images) > 0 {
		found := false
		for _, c := range all {
			if rest, has := version.Images[c.repository]; has {
				found = true
				c.set(rest)
			}
		}
		if !found {
			return fmt.Errorf("none of its containers has an image of %s", strings.Join(repositories(version.Images), ", "))
		}
		return nil
	}
	return setTags(all, strings.Split(version.Revision, ","))
}

// setTags replaces the tags that there are by others, one by one in the order in which versions are told: each of them once.
func setTags(all []*container, tags []string) error {
	var present []string
	for _, c := range all {
		if !slices.Contains(present, c.tag()) {
			present = append(present, c.tag())
		}
	}
	if len(present) != len(tags) {
		return fmt.Errorf("it has images with %d different tags, and the version, which nothing runs any more, has %d: write the images by hand", len(present), len(tags))
	}
	for _, c := range all {
		tag := tags[slices.Index(present, c.tag())]
		if !imageTag.MatchString(tag) {
			return fmt.Errorf("%q is no tag of an image", tag)
		}
		c.set(":" + tag)
	}
	return nil
}

// imageTag is what registries allow as a tag.
var imageTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func repositories(images map[string]string) (out []string) {
	for repository := range images {
		out = append(out, repository)
	}
	slices.Sort(out)
	return out
}
