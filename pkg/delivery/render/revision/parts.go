package revision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// Content is put into objects of at most mostBytes of JSON, each with what it takes beside its own. A revision below headBytes is one object.
const (
	mostBytes = 1<<20 - 16<<10
	headBytes = 256 << 10
	overhead  = 160
	// mostNamed bounds how many objects the targets of a head name together, by hashes that take a MiB then. Targets with the same objects name them once.
	mostNamed = 15_000
)

// Bounds of what a head says beside its manifests. They are those of the API.
const (
	mostChunks = 64
	// mostHeld bounds all manifests of a revision together, in bytes: it is what its chunks could hold.
	mostHeld     = mostChunks * mostBytes
	mostImages   = 2_000
	mostWarnings = 200
	longestText  = 1024
)

// SecretType is the type of the Secrets that hold the manifests of a revision which are Secrets.
const SecretType corev1.SecretType = v1alpha1.SecretRevision

// About is what a revision says beside its manifests.
type About struct {
	// Application is what the revision belongs to.
	Application *v1alpha1.Application
	Number      int64
	Origin      *v1alpha1.Origin
	Images      []render.Image
	Charts      []string
	Warnings    []string
}

// Parts are the objects that a revision is stored as. Secrets are made first, then chunks, then the head, so that a head that is there is whole.
type Parts struct {
	Secrets []*corev1.Secret
	Chunks  []*v1alpha1.ApplicationRevision
	Head    *v1alpha1.ApplicationRevision
}

// Parts lays a set out as objects.
func (s *Set) Parts(about About) (*Parts, error) {
	name := v1alpha1.RevisionName(about.Application.Name, about.Number)
	head := about.object(name)
	out := &Parts{Head: head}
	objects, err := s.objects(about, out)
	if err != nil {
		return nil, err
	}
	if err := s.divide(about, objects, out); err != nil {
		return nil, err
	}
	named, lists := 0, sets.New[string]()
	for _, target := range slices.Sorted(maps.Keys(s.Targets)) {
		var objects []string
		for _, place := range s.Targets[target] {
			objects = append(objects, s.Contents[place].Hash)
		}
		of := v1alpha1.RevisionTarget{Name: target, Hash: v1alpha1.HashObjects(objects)}
		if !lists.Has(of.Hash) {
			lists.Insert(of.Hash)
			of.Objects, named = objects, named+len(objects)
		}
		head.Spec.Targets = append(head.Spec.Targets, of)
	}
	if named > mostNamed {
		return nil, fmt.Errorf("%w: its targets have %d objects, where each is counted once of targets that have all the same ones, and a revision can name %d: "+
			"divide it into several applications", render.ErrTooLarge, named, mostNamed)
	}
	head.Spec.Hash, head.Spec.Content, head.Spec.Origin = s.Hash, s.Content, about.Origin
	head.Spec.Images = imagesOf(about.Images)
	head.Spec.Charts = said(about.Charts, true)
	head.Spec.Warnings = said(about.Warnings, false)
	return out, nil
}

// stored is an entry of a revision, and the bytes that it takes.
type stored struct {
	entry v1alpha1.RevisionObject
	size  int
}

// objects are the entries for all contents. Those of Secrets refer to Secrets, which are added to into.
func (s *Set) objects(about About, into *Parts) ([]stored, error) {
	var secrets []Content
	for i := range s.Contents {
		if isSecret(s.Contents[i].Object) {
			secrets = append(secrets, s.Contents[i])
		}
	}
	runs, err := Chunks(secrets, mostBytes, overhead)
	if err != nil {
		return nil, err
	}
	where := map[string]*v1alpha1.SecretKeyReference{}
	for i, run := range runs {
		secret := &corev1.Secret{ObjectMeta: about.meta(SecretName(v1alpha1.RevisionName(about.Application.Name, about.Number), i+1)), Type: SecretType, Immutable: ptr.To(true)}
		secret.Data = map[string][]byte{}
		for _, content := range run {
			secret.Data[content.Hash] = content.JSON
			where[content.Hash] = &v1alpha1.SecretKeyReference{Name: secret.Name, Key: content.Hash}
		}
		into.Secrets = append(into.Secrets, secret)
	}
	out := make([]stored, 0, len(s.Contents))
	for i := range s.Contents {
		content := &s.Contents[i]
		if ref := where[content.Hash]; ref != nil {
			out = append(out, stored{v1alpha1.RevisionObject{Hash: content.Hash, SecretKeyRef: ref}, overhead + len(ref.Name) + len(ref.Key)})
			continue
		}
		manifest := &runtime.RawExtension{Raw: content.JSON}
		out = append(out, stored{v1alpha1.RevisionObject{Hash: content.Hash, Manifest: manifest}, overhead + len(content.JSON)})
	}
	return out, nil
}

// SecretName is the name of a Secret with manifests of a revision, which are counted from 1.
func SecretName(revision string, index int) string {
	return fmt.Sprintf("%s-secrets-%d", revision, index)
}

func isSecret(name render.ObjectName) bool { return name.Group == "" && name.Kind == "Secret" }

// divide puts entries into the head if they are few, and into chunks otherwise.
func (s *Set) divide(about About, objects []stored, into *Parts) error {
	total := 0
	for i, object := range objects {
		if object.size > mostBytes {
			return fmt.Errorf("%w: %s has %d bytes, and %d are allowed for an object", render.ErrTooLarge, s.Contents[i].Object, object.size, mostBytes)
		}
		total += object.size
	}
	if total <= headBytes {
		for _, object := range objects {
			into.Head.Spec.Objects = append(into.Head.Spec.Objects, object.entry)
		}
		return nil
	}
	var chunk *v1alpha1.ApplicationRevision
	size := 0
	for _, object := range objects {
		if chunk == nil || size+object.size > mostBytes {
			chunk = about.object(v1alpha1.ChunkName(into.Head.Name, len(into.Chunks)+1))
			chunk.Spec.ChunkOf = into.Head.Name
			into.Chunks = append(into.Chunks, chunk)
			size = 0
		}
		chunk.Spec.Objects = append(chunk.Spec.Objects, object.entry)
		size += object.size
	}
	if len(into.Chunks) > mostChunks {
		return fmt.Errorf("%w: it takes %d objects to store all manifests, and %d are allowed", render.ErrTooLarge, len(into.Chunks), mostChunks)
	}
	for _, chunk := range into.Chunks {
		hashes := make([]string, 0, len(chunk.Spec.Objects))
		for _, object := range chunk.Spec.Objects {
			hashes = append(hashes, object.Hash)
		}
		into.Head.Spec.Chunks = append(into.Head.Spec.Chunks, v1alpha1.RevisionChunk{Name: chunk.Name, Hash: v1alpha1.HashObjects(hashes)})
	}
	return nil
}

func (a About) object(name string) *v1alpha1.ApplicationRevision {
	return &v1alpha1.ApplicationRevision{ObjectMeta: a.meta(name), Spec: v1alpha1.ApplicationRevisionSpec{Application: a.Application.Name, Number: a.Number}}
}

// meta is that of an object which goes when the application does.
func (a About) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: a.Application.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelApplication: a.Application.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.Application, v1alpha1.SchemeGroupVersion.WithKind("Application"))},
	}
}

// imagesOf returns images once each, sorted.
func imagesOf(images []render.Image) []v1alpha1.RevisionImage {
	var out []v1alpha1.RevisionImage
	for _, image := range images {
		out = append(out, v1alpha1.RevisionImage{
			Name: text.Line(image.Name, longestText), Tag: text.Line(image.Tag, longestText), Digest: text.Line(image.Digest, longestText),
		})
	}
	slices.SortFunc(out, func(a, b v1alpha1.RevisionImage) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Digest, b.Digest))
	})
	out = slices.Compact(out)
	out = slices.DeleteFunc(out, func(image v1alpha1.RevisionImage) bool { return image.Name == "" })
	return out[:min(len(out), mostImages)]
}

// said returns what strangers' files say, each once, with bounds.
func said(lines []string, sorted bool) []string {
	var out []string
	for _, line := range lines {
		if line = text.Line(line, longestText); line != "" && !slices.Contains(out, line) && len(out) < mostWarnings {
			out = append(out, line)
		}
	}
	if sorted {
		slices.Sort(out)
	}
	return out
}
