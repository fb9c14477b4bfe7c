package contents

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
)

const (
	web    = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}`
	config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"},"data":{"colour":"blue"}}`
	green  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"},"data":{"colour":"green"}}`
	secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"},"stringData":{"password":"swordfish"}}`
)

var (
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	configMaps  = schema.GroupKind{Kind: "ConfigMap"}
	secrets     = schema.GroupKind{Kind: "Secret"}
)

// store is what the listers have.
type store struct {
	revisions, secrets cache.Indexer
}

func newStore() store {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return store{cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace), cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)}
}

func (s store) reader() *Reader {
	return New(listers.NewApplicationRevisionLister(s.revisions), corelisters.NewSecretLister(s.secrets))
}

func hash(t testing.TB, manifest string) string {
	t.Helper()
	out, err := v1alpha1.HashManifest([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func manifest(t testing.TB, content string) v1alpha1.RevisionObject {
	return v1alpha1.RevisionObject{Hash: hash(t, content), Manifest: &runtime.RawExtension{Raw: []byte(content)}}
}

func kept(t testing.TB, content, name, key string) v1alpha1.RevisionObject {
	return v1alpha1.RevisionObject{Hash: hash(t, content), SecretKeyRef: &v1alpha1.SecretKeyReference{Name: name, Key: key}}
}

func targetOf(name string, objects ...v1alpha1.RevisionObject) v1alpha1.RevisionTarget {
	out := v1alpha1.RevisionTarget{Name: name}
	for _, object := range objects {
		out.Objects = append(out.Objects, object.Hash)
	}
	out.Hash = v1alpha1.HashObjects(out.Objects)
	return out
}

// revision returns web-v7, which has the Deployment in its head, a ConfigMap for each target in a chunk, and a Secret where Secrets are.
func revision(t testing.TB) (head, first, second *v1alpha1.ApplicationRevision, in *corev1.Secret) {
	t.Helper()
	east, west, hidden := manifest(t, config), manifest(t, green), kept(t, secret, "web-v7", "0")
	chunk := func(index int, objects ...v1alpha1.RevisionObject) *v1alpha1.ApplicationRevision {
		name := v1alpha1.ChunkName("web-v7", index)
		return &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec: v1alpha1.ApplicationRevisionSpec{Application: "web", Number: 7, ChunkOf: "web-v7", Objects: objects}}
	}
	first, second = chunk(1, east), chunk(2, west, hidden)
	head = &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7", UID: "uid"},
		Spec: v1alpha1.ApplicationRevisionSpec{Application: "web", Number: 7, Objects: []v1alpha1.RevisionObject{manifest(t, web)}}}
	head.Spec.Targets = []v1alpha1.RevisionTarget{targetOf("east", east, manifest(t, web)), targetOf("west", hidden, west, manifest(t, web))}
	head.Spec.Chunks = []v1alpha1.RevisionChunk{{Name: first.Name, Hash: v1alpha1.HashObjects([]string{east.Hash})},
		{Name: second.Name, Hash: v1alpha1.HashObjects([]string{west.Hash, hidden.Hash})}}
	head.Spec.Hash = v1alpha1.HashRevision(head.Spec.Targets)
	return head, first, second, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7"}, Data: map[string][]byte{"0": []byte(secret)}}
}

func (s store) add(t testing.TB, objects ...runtime.Object) {
	t.Helper()
	for _, object := range objects {
		in := s.revisions
		if _, isSecret := object.(*corev1.Secret); isSecret {
			in = s.secrets
		}
		if err := in.Add(object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATargetHasItsObjectsInTheirOrder(t *testing.T) {
	in := newStore()
	head, first, second, hidden := revision(t)
	head.Spec.Targets = append(head.Spec.Targets, v1alpha1.RevisionTarget{Name: "york", Hash: head.Spec.Targets[0].Hash}) // has what east has
	head.Spec.Hash = v1alpha1.HashRevision(head.Spec.Targets)
	in.add(t, head, first, second, hidden)
	reader := in.reader()
	for name, want := range map[string]string{
		"east": "ConfigMap web blue; Deployment web ;",
		"west": "Secret web ; ConfigMap web green; Deployment web ;",
		"york": "ConfigMap web blue; Deployment web ;",
	} {
		for range 2 {
			found, err := reader.Objects("shop", "web-v7", name)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, object := range found {
				data, _ := object.Object["data"].(map[string]any)
				colour, _ := data["colour"].(string)
				got += fmt.Sprintf("%s %s %s; ", object.GetKind(), object.GetName(), colour)
				object.SetName("changed by the caller")
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("target %q has %s, want %s", name, got, want)
			}
		}
	}
}

func TestTargetsWithTheSameObjectsShareTheirIndex(t *testing.T) {
	known := &known{targets: map[string]*target{}}
	for name, hashes := range map[string][]string{"east": {}, "york": {}} {
		known.index(name, hashes)
	}
	if known.targets["east"] != known.targets["york"] {
		t.Error("each of two targets with the same objects has an index")
	}
	known.index("west", []string{"another"})
	if west := known.targets["west"]; west == known.targets["east"] || west.whole {
		t.Errorf("a target with other objects has %+v", west)
	}
}

func TestAnObjectIsFoundByItsKindAndName(t *testing.T) {
	in := newStore()
	head, first, second, hidden := revision(t)
	in.add(t, head, first, second, hidden)
	reader := in.reader()
	for name, test := range map[string]struct {
		target, name string
		kind         schema.GroupKind
		want         string
		err          error
	}{
		"one in the head":                   {"east", "web", deployments, web, nil},
		"one in a chunk":                    {"east", "web", configMaps, config, nil},
		"another content for another one":   {"west", "web", configMaps, green, nil},
		"one in a Secret":                   {"west", "web", secrets, secret, nil},
		"a kind that the target lacks":      {"east", "web", secrets, "", ErrAbsent},
		"a name that the target lacks":      {"east", "other", deployments, "", ErrAbsent},
		"a target that there is not":        {"north", "web", deployments, "", ErrAbsent},
		"a kind of that name, other group":  {"east", "web", schema.GroupKind{Group: "extensions", Kind: "Deployment"}, "", ErrAbsent},
		"the empty name of a target, asked": {"", "web", deployments, "", ErrAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := reader.Find("shop", "web-v7", test.target, test.kind, test.name)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if test.err == nil && found.Hash != hash(t, test.want) {
				t.Errorf("found %v, want %s", found.Object, test.want)
			}
			if test.err != nil && !strings.HasPrefix(err.Error(), "revision shop/web-v7: ") {
				t.Errorf("error %q does not begin with the revision", err)
			}
		})
	}
}

func TestAnObjectOfAnotherNamespaceIsNotMeant(t *testing.T) {
	in := newStore()
	object := manifest(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"kube-system"}}`)
	head := &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v1", UID: "uid"},
		Spec: v1alpha1.ApplicationRevisionSpec{Application: "web", Number: 1, Objects: []v1alpha1.RevisionObject{object}}}
	head.Spec.Targets = []v1alpha1.RevisionTarget{targetOf("default", object)}
	head.Spec.Hash = v1alpha1.HashRevision(head.Spec.Targets)
	in.add(t, head)
	if found, err := in.reader().Object("shop", "web-v1", "default", configMaps, "web"); !errors.Is(err, ErrAbsent) {
		t.Errorf("found %v (%v), want none", found, err)
	}
}

func TestWhatIsNotThereOrNotProvenIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		// of changes what is there, or returns what is to be left out.
		of   func(head, first, second *v1alpha1.ApplicationRevision, in *corev1.Secret) (without runtime.Object)
		err  error
		says string
		// east is the error about target east, which needs the first chunk and no Secret.
		east error
	}{
		"no revision": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object { return head },
			err: ErrMissing, east: ErrMissing, says: "revision shop/web-v7: is not there"},
		"a chunk that is missing": {of: func(_, _, second *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object { return second },
			err: ErrMissing, says: `its chunk "web-v7-2" is not there`},
		"a chunk with another manifest": {of: func(_, _, second *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			second.Spec.Objects[0] = manifest(t, config)
			return nil
		}, err: ErrMismatch, says: `its chunk "web-v7-2" is not what`},
		"a chunk whose manifest is not that of its hash": {of: func(_, _, second *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			second.Spec.Objects[0].Manifest = manifest(t, config).Manifest
			return nil
		}, err: ErrMismatch, says: "its manifest "},
		"a chunk of another revision": {of: func(_, _, second *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			second.Spec.ChunkOf = "web-v8"
			return nil
		}, err: ErrMismatch, says: `its chunk "web-v7-2"`},
		"a head that names no chunks": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.Chunks = nil
			return nil
		}, err: ErrMismatch, east: ErrMismatch, says: "its list of chunks"},
		"a head with other objects for a target": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.Targets[1].Objects = head.Spec.Targets[0].Objects
			return nil
		}, err: ErrMismatch, says: `its list of objects for target "west"`},
		"a head with another target": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.Targets[1].Hash = head.Spec.Targets[0].Hash
			return nil
		}, err: ErrMismatch, east: ErrMismatch, says: "its list of targets"},
		"a head that is a chunk": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.ChunkOf = "web-v6"
			return nil
		}, err: ErrMismatch, east: ErrMismatch, says: `it is a chunk of "web-v6"`},
		"a head whose manifest is not that of its hash": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.Objects[0].Manifest = &runtime.RawExtension{Raw: []byte(`{"kind":"Deployment","metadata":{"name":"web"}}`)}
			return nil
		}, err: ErrMismatch, east: ErrMismatch},
		"a manifest that is neither here nor elsewhere": {of: func(head, _, _ *v1alpha1.ApplicationRevision, _ *corev1.Secret) runtime.Object {
			head.Spec.Objects[0].Manifest = nil
			return nil
		}, err: ErrMismatch, east: ErrMismatch},
		"a Secret that is missing": {of: func(_, _, _ *v1alpha1.ApplicationRevision, in *corev1.Secret) runtime.Object { return in },
			err: ErrMissing, says: `its Secret "web-v7" is not there`},
		"a Secret without the key": {of: func(_, _, _ *v1alpha1.ApplicationRevision, in *corev1.Secret) runtime.Object {
			in.Data = nil
			return nil
		}, err: ErrMissing, says: `key "0" of Secret "web-v7" is not there`},
		"a Secret that was changed": {of: func(_, _, _ *v1alpha1.ApplicationRevision, in *corev1.Secret) runtime.Object {
			in.Data["0"] = []byte(strings.ReplaceAll(secret, "swordfish", "shark"))
			return nil
		}, err: ErrMismatch, says: `key "0" of Secret "web-v7" is not what`},
		"a Secret that is no JSON": {of: func(_, _, _ *v1alpha1.ApplicationRevision, in *corev1.Secret) runtime.Object {
			in.Data["0"] = []byte("swordfish")
			return nil
		}, err: ErrMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore()
			head, first, second, in := revision(t)
			without := test.of(head, first, second, in)
			for _, object := range []runtime.Object{head, first, second, in} {
				if object != without {
					store.add(t, object)
				}
			}
			reader := store.reader()
			for range 2 {
				_, err := reader.Objects("shop", "web-v7", "west")
				if !errors.Is(err, test.err) || err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one of %q that says %q", err, test.err, test.says)
				}
				if err != nil && strings.Contains(err.Error(), "swordfish") {
					t.Errorf("error %q tells what is secret", err)
				}
			}
			if _, err := reader.Objects("shop", "web-v7", "east"); !errors.Is(err, test.east) {
				t.Errorf("error %v about target east, want %v", err, test.east)
			}
		})
	}
}

func TestAnObjectIsFoundAlthoughOthersAreMissing(t *testing.T) {
	in := newStore()
	head, first, second, hidden := revision(t)
	in.add(t, head, first, second)
	reader := in.reader()
	if _, err := reader.Object("shop", "web-v7", "west", deployments, "web"); err != nil {
		t.Errorf("the Deployment: %v", err)
	}
	if _, err := reader.Object("shop", "web-v7", "west", secrets, "web"); !errors.Is(err, ErrMissing) {
		t.Errorf("the Secret: error %v, want %v", err, ErrMissing)
	}
	in.add(t, hidden)
	if _, err := reader.Object("shop", "web-v7", "west", secrets, "web"); err != nil {
		t.Errorf("the Secret that has come: %v", err)
	}
}

func TestARevisionThatIsMadeAnewIsReadAnew(t *testing.T) {
	in := newStore()
	head, first, second, hidden := revision(t)
	in.add(t, head, first, second, hidden)
	reader := in.reader()
	if _, err := reader.Objects("shop", "web-v7", "west"); err != nil {
		t.Fatal(err)
	}
	anew := manifest(t, green)
	head = head.DeepCopy()
	head.UID, head.Spec.Chunks, head.Spec.Objects = "another", nil, []v1alpha1.RevisionObject{anew}
	head.Spec.Targets = []v1alpha1.RevisionTarget{targetOf("west", anew)}
	head.Spec.Hash = v1alpha1.HashRevision(head.Spec.Targets)
	in.add(t, head)
	if found, err := reader.Objects("shop", "web-v7", "west"); err != nil || len(found) != 1 {
		t.Errorf("%d objects (%v), want that of the new one", len(found), err)
	}
	if err := in.revisions.Delete(head); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Objects("shop", "web-v7", "west"); !errors.Is(err, ErrMissing) {
		t.Errorf("error %v for a revision that is gone, want %v", err, ErrMissing)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	in := newStore()
	reader := in.reader()
	reader.decoded = newDecoded(1000)
	const revisions = 50
	var all sync.WaitGroup
	for i := range revisions {
		head, first, second, hidden := revision(t)
		head.Name, head.UID = fmt.Sprintf("web-v%d", i), types.UID(fmt.Sprint(i))
		first.Spec.ChunkOf, second.Spec.ChunkOf = head.Name, head.Name
		first.Name, second.Name = v1alpha1.ChunkName(head.Name, 1), v1alpha1.ChunkName(head.Name, 2)
		head.Spec.Chunks[0].Name, head.Spec.Chunks[1].Name = first.Name, second.Name
		in.add(t, head, first, second, hidden)
		for _, target := range []string{"east", "west"} {
			all.Go(func() {
				if _, err := reader.Objects("shop", head.Name, target); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	reader.decoded.mu.Lock()
	defer reader.decoded.mu.Unlock()
	if size, heads := reader.decoded.size, reader.decoded.heads.Len(); size > 1000 || size <= 0 || heads == 0 {
		t.Errorf("%d bytes of %d revisions are kept, want at most 1000 and some", size, heads)
	}
}
