package validation

import (
	"fmt"
	"regexp"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/internal/fields"
)

// Bounds of a revision. What is larger is chunked.
const (
	mostManifestBytes = 1 << 20
	mostObjects       = 10_000
	mostChunks        = 64
	mostImages        = 2_000
	mostWarnings      = 200
	mostChanged       = 1_000
	longestText       = 4096
)

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ValidateApplicationRevision refuses a new revision that is not what its hashes say, or that another name belongs to.
func ValidateApplicationRevision(revision *v1alpha1.ApplicationRevision) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&revision.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	spec, path := &revision.Spec, field.NewPath("spec")
	errs = append(errs, fields.Name(spec.Application, path.Child("application"), validation.IsDNS1123Label)...)
	if spec.Number < 1 {
		errs = append(errs, field.Invalid(path.Child("number"), spec.Number, "must be at least 1"))
	}
	if len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateRevisionObjects(spec.Objects, path.Child("objects"))...)
	if revision.IsChunk() {
		return append(errs, validateChunk(revision, path)...)
	}
	return append(errs, validateHead(revision, path)...)
}

// ValidateApplicationRevisionUpdate refuses every change of what a revision holds.
func ValidateApplicationRevisionUpdate(revision, old *v1alpha1.ApplicationRevision) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&revision.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(revision.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "a revision never changes; make another one"))
	}
	return errs
}

func validateRevisionObjects(objects []v1alpha1.RevisionObject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(objects) > mostObjects {
		return field.ErrorList{field.TooMany(path, len(objects), mostObjects)}
	}
	seen := map[string]bool{}
	size := 0
	for i := range objects {
		at, object := path.Index(i), &objects[i]
		if !hexHash.MatchString(object.Hash) {
			errs = append(errs, field.Invalid(at.Child("hash"), object.Hash, "must be a SHA-256 in hexadecimal"))
		} else if seen[object.Hash] {
			errs = append(errs, field.Duplicate(at.Child("hash"), object.Hash))
		}
		seen[object.Hash] = true
		errs = append(errs, validateRevisionObject(object, at)...)
		if object.Manifest != nil {
			size += len(object.Manifest.Raw)
		}
	}
	if size > mostManifestBytes {
		errs = append(errs, field.TooLong(path, "", mostManifestBytes))
	}
	return errs
}

// validateRevisionObject refuses a manifest that is not the one whose hash it goes by. That of a Secret cannot be looked at here.
func validateRevisionObject(object *v1alpha1.RevisionObject, path *field.Path) field.ErrorList {
	var set []string
	var errs field.ErrorList
	if object.Manifest != nil {
		set = append(set, "manifest")
		at := path.Child("manifest")
		manifest, problems := validateManifest(object.Manifest, at)
		errs = append(errs, problems...)
		if manifest != nil {
			if hash, err := v1alpha1.HashManifest(object.Manifest.Raw); err != nil || hash != object.Hash {
				errs = append(errs, field.Invalid(path.Child("hash"), object.Hash, "must be that of the manifest, "+hash))
			}
		}
	}
	if ref := object.SecretKeyRef; ref != nil {
		set = append(set, "secretKeyRef")
		errs = append(errs, fields.Name(ref.Name, path.Child("secretKeyRef", "name"), validation.IsDNS1123Subdomain)...)
		errs = append(errs, fields.Name(ref.Key, path.Child("secretKeyRef", "key"), validation.IsConfigMapKey)...)
	}
	return append(exactlyOne(set, path, "manifest", "secretKeyRef"), errs...)
}

// validateChunk refuses what belongs to a head.
func validateChunk(chunk *v1alpha1.ApplicationRevision, path *field.Path) field.ErrorList {
	spec := &chunk.Spec
	var errs field.ErrorList
	if want := v1alpha1.RevisionName(spec.Application, spec.Number); spec.ChunkOf != want {
		errs = append(errs, field.Invalid(path.Child("chunkOf"), spec.ChunkOf, "must be "+want))
	}
	index := 0
	for i := 1; i <= mostChunks; i++ {
		if chunk.Name == v1alpha1.ChunkName(spec.ChunkOf, i) {
			index = i
		}
	}
	if index == 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), chunk.Name,
			fmt.Sprintf("must be chunkOf and a number from 1 to %d, such as %s", mostChunks, v1alpha1.ChunkName(spec.ChunkOf, 1))))
	}
	if len(spec.Objects) == 0 {
		errs = append(errs, field.Required(path.Child("objects"), "a chunk is for objects"))
	}
	for _, given := range []struct {
		field string
		set   bool
	}{
		{"hash", spec.Hash != ""}, {"content", spec.Content != ""}, {"targets", len(spec.Targets) > 0}, {"chunks", len(spec.Chunks) > 0}, {"origin", spec.Origin != nil},
		{"changes", spec.Changes != nil},
		{"images", len(spec.Images) > 0}, {"charts", len(spec.Charts) > 0}, {"warnings", len(spec.Warnings) > 0},
	} {
		if given.set {
			errs = append(errs, field.Forbidden(path.Child(given.field), "may not be specified for a chunk"))
		}
	}
	return errs
}

func validateHead(head *v1alpha1.ApplicationRevision, path *field.Path) field.ErrorList {
	spec := &head.Spec
	var errs field.ErrorList
	if want := v1alpha1.RevisionName(spec.Application, spec.Number); head.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), head.Name, "must be "+want))
	}
	errs = append(errs, validateChunks(spec.Chunks, head.Name, path.Child("chunks"))...)
	errs = append(errs, validateRevisionTargets(spec, path.Child("targets"))...)
	if want := v1alpha1.HashWithContent(v1alpha1.HashRevision(spec.Targets), spec.Content); spec.Hash != want {
		errs = append(errs, field.Invalid(path.Child("hash"), spec.Hash, "must be that of the targets and the content, "+want))
	}
	if spec.Content != "" && !hexHash.MatchString(spec.Content) {
		errs = append(errs, field.Invalid(path.Child("content"), spec.Content, "must be a SHA-256 in hexadecimal"))
	}
	if origin := spec.Origin; origin != nil {
		errs = append(errs, validateOrigin(origin, path.Child("origin"))...)
	}
	if changes := spec.Changes; changes != nil {
		errs = append(errs, validateChanges(changes, spec, path.Child("changes"))...)
	}
	if len(spec.Images) > mostImages {
		errs = append(errs, field.TooMany(path.Child("images"), len(spec.Images), mostImages))
	}
	for i, image := range spec.Images {
		if image.Name == "" {
			errs = append(errs, field.Required(path.Child("images").Index(i).Child("name"), ""))
		}
	}
	errs = append(errs, validateTexts(spec.Charts, path.Child("charts"))...)
	return append(errs, validateTexts(spec.Warnings, path.Child("warnings"))...)
}

func validateChunks(chunks []v1alpha1.RevisionChunk, head string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(chunks) > mostChunks {
		errs = append(errs, field.TooMany(path, len(chunks), mostChunks))
	}
	for i, chunk := range chunks {
		if want := v1alpha1.ChunkName(head, i+1); chunk.Name != want {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), chunk.Name, "must be "+want))
		}
		if !hexHash.MatchString(chunk.Hash) {
			errs = append(errs, field.Invalid(path.Index(i).Child("hash"), chunk.Hash, "must be a SHA-256 in hexadecimal"))
		}
	}
	return errs
}

// validateRevisionTargets refuses targets of objects that the revision does not have. Those of chunks cannot be looked at here.
func validateRevisionTargets(spec *v1alpha1.ApplicationRevisionSpec, path *field.Path) field.ErrorList {
	if len(spec.Targets) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(spec.Targets) > mostTargets {
		return field.ErrorList{field.TooMany(path, len(spec.Targets), mostTargets)}
	}
	there := map[string]bool{}
	for i := range spec.Objects {
		there[spec.Objects[i].Hash] = true
	}
	var errs field.ErrorList
	seen, listed := map[string]bool{}, map[string]bool{} // listed are the hashes of lists, each of which is proven once
	for i := range spec.Targets {
		at, target := path.Index(i), &spec.Targets[i]
		errs = append(errs, validateNewName(target.Name, seen, at.Child("name"))...)
		if len(target.Objects) > 0 || !listed[target.Hash] {
			if want := v1alpha1.HashObjects(target.Objects); target.Hash != want {
				errs = append(errs, field.Invalid(at.Child("hash"), target.Hash, "must be that of the objects, "+want))
			} else {
				listed[want] = true
			}
		}
		once := map[string]bool{}
		for j, hash := range target.Objects {
			if once[hash] {
				errs = append(errs, field.Duplicate(at.Child("objects").Index(j), hash))
			}
			once[hash] = true
			if !there[hash] && len(spec.Chunks) == 0 {
				errs = append(errs, field.NotFound(at.Child("objects").Index(j), hash))
			}
		}
	}
	return errs
}

func validateOrigin(origin *v1alpha1.Origin, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ field, value string }{
		{"url", origin.URL}, {"ref", origin.Ref}, {"path", origin.Path}, {"commit", origin.Commit}, {"author", origin.Author}, {"message", origin.Message},
	} {
		errs = append(errs, validateText(part.value, path.Child(part.field))...)
	}
	if origin.URL != "" {
		errs = append(errs, validateAddress(origin.URL, path.Child("url"))...)
	}
	return errs
}

// validateChanges refuses changes since what is no earlier revision of the application.
func validateChanges(changes *v1alpha1.RevisionChanges, spec *v1alpha1.ApplicationRevisionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if number := v1alpha1.RevisionNumber(spec.Application, changes.Since); number == 0 || number >= spec.Number {
		errs = append(errs, field.Invalid(path.Child("since"), changes.Since, "must be the name of an earlier revision of the application"))
	}
	if len(changes.Files) > mostChanged {
		errs = append(errs, field.TooMany(path.Child("files"), len(changes.Files), mostChanged))
	}
	for i, file := range changes.Files {
		errs = append(errs, validateText(file, path.Child("files").Index(i))...)
	}
	return errs
}

func validateTexts(texts []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(texts) > mostWarnings {
		errs = append(errs, field.TooMany(path, len(texts), mostWarnings))
	}
	for i, text := range texts {
		errs = append(errs, validateText(text, path.Index(i))...)
	}
	return errs
}

func validateText(text string, path *field.Path) field.ErrorList {
	if len(text) > longestText {
		return field.ErrorList{field.TooLong(path, "", longestText)}
	}
	return nil
}
