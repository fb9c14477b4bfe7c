package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func manifest(t *testing.T, content string) v1alpha1.RevisionObject {
	t.Helper()
	hash, err := v1alpha1.HashManifest([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return v1alpha1.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(content)}}
}

// target has objects of a revision.
func target(name string, objects ...v1alpha1.RevisionObject) v1alpha1.RevisionTarget {
	var hashes []string
	for _, object := range objects {
		hashes = append(hashes, object.Hash)
	}
	return v1alpha1.RevisionTarget{Name: name, Objects: hashes, Hash: v1alpha1.HashObjects(hashes)}
}

// head is a revision of two objects, of which both targets have the first.
func head(t *testing.T) *v1alpha1.ApplicationRevision {
	t.Helper()
	web := manifest(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}`)
	config := manifest(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`)
	targets := []v1alpha1.RevisionTarget{target("east", web), target("west", web, config)}
	return &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7", ResourceVersion: "1"},
		Spec: v1alpha1.ApplicationRevisionSpec{
			Application: "web", Number: 7, Hash: v1alpha1.HashRevision(targets), Objects: []v1alpha1.RevisionObject{web, config}, Targets: targets,
			Origin: &v1alpha1.Origin{URL: "https://git.example/shop.git", Message: "Add a cart"},
			Images: []v1alpha1.RevisionImage{{Name: "web", Tag: "7"}}, Warnings: []string{"one"},
		},
	}
}

func chunk(t *testing.T) *v1alpha1.ApplicationRevision {
	t.Helper()
	return &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7-1"},
		Spec: v1alpha1.ApplicationRevisionSpec{
			Application: "web", Number: 7, ChunkOf: "web-v7", Objects: []v1alpha1.RevisionObject{manifest(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)},
		},
	}
}

func TestValidateHead(t *testing.T) {
	hash := strings.Repeat("0", 64)
	for name, test := range map[string]struct {
		change func(*v1alpha1.ApplicationRevision)
		want   []string
	}{
		"a whole revision is fine": {change: func(*v1alpha1.ApplicationRevision) {}},
		"the manifest of a Secret is in a Secret": {change: func(r *v1alpha1.ApplicationRevision) {
			r.Spec.Objects = append(r.Spec.Objects, v1alpha1.RevisionObject{Hash: hash, SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "web-v7", Key: hash}})
		}},
		"objects of chunks are not looked at": {change: func(r *v1alpha1.ApplicationRevision) {
			r.Spec.Objects, r.Spec.Chunks = nil, []v1alpha1.RevisionChunk{{Name: "web-v7-1", Hash: hash}, {Name: "web-v7-2", Hash: hash}}
		}},
		"files that have changed since an earlier revision are fine": {change: func(r *v1alpha1.ApplicationRevision) {
			r.Spec.Changes = &v1alpha1.RevisionChanges{Since: "web-v5", Files: []string{"web/a.yaml"}}
		}},
		"files that have changed since a later one": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Changes = &v1alpha1.RevisionChanges{Since: "web-v7"} },
			want:   []string{`spec.changes.since: Invalid value: "web-v7": must be the name of an earlier revision`},
		},
		"files that have changed since another application's": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Changes = &v1alpha1.RevisionChanges{Since: "api-v1"} },
			want:   []string{`spec.changes.since: Invalid value: "api-v1"`},
		},
		"too many files": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Changes = &v1alpha1.RevisionChanges{Since: "web-v5", Files: make([]string, 1001)}
			},
			want: []string{"spec.changes.files: Too many: 1001: must have at most 1000 items"},
		},
		"a name that belongs to another number": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Name = "web-v8" }, want: []string{`metadata.name: Invalid value: "web-v8": must be web-v7`},
		},
		"a revision of nothing": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Application, r.Spec.Number = "", 0 },
			want:   []string{"spec.application: Required value", "spec.number: Invalid value: 0"},
		},
		"a hash that is another's": {change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Hash = hash }, want: []string{"spec.hash: Invalid value"}},
		"a target that has what an earlier one has": {change: func(r *v1alpha1.ApplicationRevision) {
			r.Spec.Targets = append(r.Spec.Targets, v1alpha1.RevisionTarget{Name: "york", Hash: r.Spec.Targets[1].Hash})
			r.Spec.Hash = v1alpha1.HashRevision(r.Spec.Targets)
		}},
		"a target that has what a later one has": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Targets = append([]v1alpha1.RevisionTarget{{Name: "aden", Hash: r.Spec.Targets[1].Hash}}, r.Spec.Targets...)
				r.Spec.Hash = v1alpha1.HashRevision(r.Spec.Targets)
			},
			want: []string{"spec.targets[0].hash: Invalid value"},
		},
		"a target whose hash is another's": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Targets[1].Hash = r.Spec.Targets[0].Hash
				r.Spec.Hash = v1alpha1.HashRevision(r.Spec.Targets)
			},
			want: []string{"spec.targets[1].hash: Invalid value"},
		},
		"a manifest that was changed": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Objects[1].Manifest = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"evil"}}`)}
			},
			want: []string{"spec.objects[1].hash: Invalid value"},
		},
		"a manifest of a Secret": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Objects = append(r.Spec.Objects, v1alpha1.RevisionObject{
					Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`)},
				})
			},
			want: []string{"spec.objects[2].manifest: Forbidden: a Secret may not be here"},
		},
		"objects that are no objects, nowhere, or twice": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Objects = append(r.Spec.Objects, v1alpha1.RevisionObject{Hash: "short"}, r.Spec.Objects[0],
					v1alpha1.RevisionObject{Hash: hash, SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "A", Key: "/"}},
					v1alpha1.RevisionObject{Hash: strings.Repeat("1", 64), Manifest: &runtime.RawExtension{Raw: []byte(`"text"`)}})
			},
			want: []string{
				`spec.objects[2].hash: Invalid value: "short"`, "spec.objects[2]: Required value: exactly one of manifest, secretKeyRef",
				"spec.objects[3].hash: Duplicate value", `spec.objects[4].secretKeyRef.name: Invalid value: "A"`, `spec.objects[4].secretKeyRef.key: Invalid value: "/"`,
				"spec.objects[5].manifest: Invalid value",
			},
		},
		"no targets": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Targets, r.Spec.Hash = nil, v1alpha1.HashRevision(nil) }, want: []string{"spec.targets: Required value"},
		},
		"an object that is nowhere, and one that is there twice": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Targets[0] = target("east", v1alpha1.RevisionObject{Hash: hash}, r.Spec.Objects[0], r.Spec.Objects[0])
				r.Spec.Hash = v1alpha1.HashRevision(r.Spec.Targets)
			},
			want: []string{"spec.targets[0].objects[0]: Not found", "spec.targets[0].objects[2]: Duplicate value"},
		},
		"a target that is there twice": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Targets[1].Name = "east"
				r.Spec.Hash = v1alpha1.HashRevision(r.Spec.Targets)
			},
			want: []string{`spec.targets[1].name: Duplicate value: "east"`},
		},
		"chunks of another revision, without proof": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Chunks = []v1alpha1.RevisionChunk{{Name: "web-v6-1"}} },
			want:   []string{`spec.chunks[0].name: Invalid value: "web-v6-1": must be web-v7-1`, "spec.chunks[0].hash: Invalid value"},
		},
		"an author who writes books": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Origin.Message = strings.Repeat("a", 4097) }, want: []string{"spec.origin.message: Too long"},
		},
		"an origin with credentials": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Origin.URL = "https://a:b@git.example/a" }, want: []string{"spec.origin.url: Forbidden"},
		},
		"an image without a name": {change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Images[0].Name = "" }, want: []string{"spec.images[0].name: Required value"}},
		"warnings without end": {
			change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Warnings = make([]string, 201) }, want: []string{"spec.warnings: Too many: 201"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			revision := head(t)
			test.change(revision)
			check(t, ValidateApplicationRevision(revision), test.want)
		})
	}
}

func TestManifestsThatAreTooLargeAreForChunks(t *testing.T) {
	revision := head(t)
	large := manifest(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"a":"`+strings.Repeat("a", 1<<20)+`"}}`)
	revision.Spec.Objects = append(revision.Spec.Objects, large)
	check(t, ValidateApplicationRevision(revision), []string{"spec.objects: Too long"})
}

func TestValidateChunk(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.ApplicationRevision)
		want   []string
	}{
		"objects are fine":      {change: func(*v1alpha1.ApplicationRevision) {}},
		"a chunk of another":    {change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Number = 8 }, want: []string{`spec.chunkOf: Invalid value: "web-v7": must be web-v8`}},
		"a name that counts to": {change: func(r *v1alpha1.ApplicationRevision) { r.Name = "web-v7-65" }, want: []string{`metadata.name: Invalid value: "web-v7-65": must be chunkOf and a number from 1 to 64`}},
		"a chunk of nothing":    {change: func(r *v1alpha1.ApplicationRevision) { r.Spec.Objects = nil }, want: []string{"spec.objects: Required value"}},
		"what belongs to a head": {
			change: func(r *v1alpha1.ApplicationRevision) {
				r.Spec.Hash, r.Spec.Targets, r.Spec.Origin = "a", []v1alpha1.RevisionTarget{{}}, &v1alpha1.Origin{}
			},
			want: []string{"spec.hash: Forbidden", "spec.targets: Forbidden", "spec.origin: Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			revision := chunk(t)
			test.change(revision)
			check(t, ValidateApplicationRevision(revision), test.want)
		})
	}
}

func TestRevisionsNeverChange(t *testing.T) {
	old := head(t)
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"keep": "true"}
	check(t, ValidateApplicationRevisionUpdate(labelled, old), nil)
	changed := old.DeepCopy()
	changed.Spec.Warnings = nil
	check(t, ValidateApplicationRevisionUpdate(changed, old), []string{"spec: Forbidden: a revision never changes"})
}
