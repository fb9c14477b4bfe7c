package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // what is seen is converted
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/views"
)

// memory is storage in a map, without strategies.
type memory struct {
	stock
	resource string
	list     func() runtime.Object
	objects  map[string]runtime.Object
	events   *watch.FakeWatcher
	version  int
	// refuses is what a strategy says of a change, and compares that versions are compared.
	refuses func(obj, old runtime.Object) error
	// meanwhile is what others do before something is made.
	meanwhile func()
	compares  bool
}

func (m *memory) NewList() runtime.Object { return m.list() }

func (m *memory) New() runtime.Object {
	if m.resource == "deployments" {
		return &apps.Deployment{}
	}
	return &api.ConfigMap{}
}

func (m *memory) missing(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: m.resource}, name)
}

func (m *memory) put(obj runtime.Object) runtime.Object {
	accessor := obj.(metav1.Object)
	m.version++
	accessor.SetResourceVersion(fmt.Sprint(m.version))
	if accessor.GetUID() == "" {
		accessor.SetUID("uid")
	}
	m.objects[accessor.GetName()] = obj.DeepCopyObject()
	return obj
}

func (m *memory) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if obj, ok := m.objects[name]; ok {
		return obj.DeepCopyObject(), nil
	}
	return nil, m.missing(name)
}

func (m *memory) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	all := make([]runtime.Object, 0, len(m.objects))
	for _, obj := range m.objects {
		all = append(all, obj)
	}
	out := m.list()
	if err := meta.SetList(out, all); err != nil {
		return nil, err
	}
	of, _ := meta.ListAccessor(out)
	of.SetResourceVersion("77")
	of.SetContinue("more")
	of.SetRemainingItemCount(new(int64))
	return out, nil
}

func (m *memory) Watch(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	return m.events, nil
}

func (m *memory) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	name := obj.(metav1.Object).GetName()
	if m.meanwhile != nil {
		m.meanwhile()
	}
	if _, taken := m.objects[name]; taken {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: m.resource}, name)
	}
	if err := validate(ctx, obj); err != nil {
		return nil, err
	}
	return m.put(obj), nil
}

func (m *memory) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc,
	force bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	old, ok := m.objects[name]
	if !ok && !force {
		return nil, false, m.missing(name)
	}
	if !ok {
		obj, err := info.UpdatedObject(ctx, &api.ConfigMap{})
		if err != nil {
			return nil, false, err
		}
		made, err := m.Create(ctx, obj, create, &metav1.CreateOptions{})
		return made, true, err
	}
	kept := old.DeepCopyObject()
	obj, err := info.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	if fmt.Sprint(old) != fmt.Sprint(kept) {
		return nil, false, errors.New("what is stored was changed in its place")
	}
	if m.refuses != nil {
		if err := m.refuses(obj, old); err != nil {
			return nil, false, err
		}
	}
	if at := obj.(metav1.Object).GetResourceVersion(); m.compares && at != "" && at != old.(metav1.Object).GetResourceVersion() {
		return nil, false, apierrors.NewConflict(schema.GroupResource{Resource: m.resource}, name, errors.New("it is another version"))
	}
	if err := update(ctx, obj, old); err != nil {
		return nil, false, err
	}
	if options != nil && len(options.DryRun) > 0 {
		return obj, false, nil
	}
	return m.put(obj), false, nil
}

func (m *memory) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, _ *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, ok := m.objects[name]
	if !ok {
		return nil, false, m.missing(name)
	}
	if err := validate(ctx, obj); err != nil {
		return nil, false, err
	}
	delete(m.objects, name)
	return obj, true, nil
}

func stored(t *testing.T, resource string, objects ...runtime.Object) (*store, *memory) {
	t.Helper()
	i := slices.IndexFunc(kinds(), func(kind projection.Kind) bool { return kind.Resource.Resource == resource })
	m := &memory{resource: resource, objects: map[string]runtime.Object{}, events: watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 32})}
	m.list = func() runtime.Object { return &api.ConfigMapList{} }
	if resource == "deployments" {
		m.list = func() runtime.Object { return &apps.DeploymentList{} }
	}
	for _, obj := range objects {
		m.put(obj)
	}
	return &store{stock: m, kind: kinds()[i], project: overridden, deployments: func() *store { return nil }}, m
}

// overridden projects a Deployment by its share, with the image that an override has in east.
func overridden(kind projection.Kind, above projection.Object, cluster string) (projection.Object, error) {
	decision := identity.DecisionOf(above)
	share, decided := decision[cluster]
	if !decided {
		share.Replicas = kind.Demand(above).Replicas
	}
	version, err := (*held.Versions)(nil).In(kind, above, cluster)
	if err != nil {
		return nil, err
	}
	out, err := kind.Project(version.Object, projection.Part{Share: share, Decision: decision}, projection.Target{LogicalCluster: "logical", Cluster: cluster})
	if err != nil {
		return nil, err
	}
	if d := out.(*appsv1.Deployment); cluster == "east" && len(d.Spec.Template.Spec.Containers) > 0 {
		d.Spec.Template.Spec.Containers[0].Image = "registry.east/" + d.Spec.Template.Spec.Containers[0].Image
	}
	return out, nil
}

// annotated are the annotations of an object, in pairs of key and value.
func annotated(pairs ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		out.Annotations[pairs[i]] = pairs[i+1]
	}
	return out
}

func configMap(name string, pairs ...string) *api.ConfigMap {
	out := &api.ConfigMap{ObjectMeta: annotated(pairs...), Data: map[string]string{"colour": name}}
	out.Name = name
	return out
}

func deployment(name string, replicas int32, pairs ...string) *apps.Deployment {
	out := &apps.Deployment{ObjectMeta: annotated(pairs...)}
	out.Name, out.Spec.Replicas = name, replicas
	out.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	out.Spec.Template.Labels = map[string]string{"app": name}
	out.Spec.Template.Spec.Containers = []api.Container{{Name: "web", Image: "web:1"}, {Name: "log", Image: "log:1"}}
	return out
}

const (
	pin, view, decision, breakdown = v1alpha1.AnnotationClusters, v1alpha1.AnnotationView, v1alpha1.AnnotationPlacement, v1alpha1.AnnotationStatus
	both                           = `{"east":{"replicas":3},"west":{"replicas":1}}`
)

func all(context.Context, runtime.Object) error                        { return nil }
func allUpdates(context.Context, runtime.Object, runtime.Object) error { return nil }

// becomes is an update that changes what it is given.
func becomes(change func(obj runtime.Object)) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		change(obj)
		return obj, nil
	})
}

func update(ctx context.Context, s *store, name string, change func(obj runtime.Object)) (runtime.Object, error) {
	obj, _, err := s.Update(ctx, name, becomes(change), all, allUpdates, false, &metav1.UpdateOptions{})
	return obj, err
}

func TestWhatAClusterSees(t *testing.T) {
	s, _ := stored(t, "configmaps", configMap("common"), configMap("blue", view, "east", pin, "east"), configMap("green", view, "west", pin, "west"))
	d, _ := stored(t, "deployments", deployment("shared", 4, decision, both), deployment("mine", 2, pin, "east"), deployment("theirs", 2, pin, "west", decision, `{"west":{"replicas":2}}`),
		deployment("nowhere", 2), deployment("many", 2, pin, "east,west"))
	for _, test := range []struct {
		store *store
		view  string
		want  string
	}{
		{s, "east", "blue common"}, {s, "west", "common green"}, {s, "", "blue common green"},
		{d, "east", "mine shared"}, {d, "west", "shared theirs"}, {d, "", "many mine nowhere shared theirs"},
	} {
		ctx := t.Context()
		if test.view != "" {
			ctx = views.With(ctx, test.view)
		}
		list, err := test.store.List(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		if err := meta.EachListItem(list, func(obj runtime.Object) error {
			accessor := obj.(metav1.Object)
			names = append(names, accessor.GetName())
			_, err := test.store.Get(ctx, accessor.GetName(), nil)
			if hides := accessor.GetAnnotations()[decision]+accessor.GetAnnotations()[view] == ""; test.view != "" && !hides {
				t.Errorf("%s shows %v", accessor.GetName(), accessor.GetAnnotations())
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("the view of %q shows %s, want %s", test.view, got, test.want)
		}
		if of, _ := meta.ListAccessor(list); of.GetResourceVersion() != "77" || of.GetContinue() != "more" || test.view != "" && of.GetRemainingItemCount() != nil {
			t.Errorf("the list of view %q goes on at %q, %q, and counts %v", test.view, of.GetResourceVersion(), of.GetContinue(), of.GetRemainingItemCount())
		}
	}
	if _, err := s.Get(views.With(t.Context(), "east"), "green", nil); !apierrors.IsNotFound(err) {
		t.Errorf("what another has is %v", err)
	}
}

func TestAWorkloadIsSeenAsTheClusterIsToHoldIt(t *testing.T) {
	shared := deployment("web", 4, decision, both, breakdown, `{"east":{"replicas":3,"ready":2,"available":1,"updated":3},"west":{"replicas":1}}`, "note", "x",
		"kubectl.kubernetes.io/last-applied-configuration", "{}")
	shared.Status.Replicas, shared.Status.ReadyReplicas = 4, 3
	s, _ := stored(t, "deployments", shared)
	obj, err := s.Get(views.With(t.Context(), "east"), "web", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := obj.(*apps.Deployment)
	if got.Spec.Replicas != 3 || got.Spec.Template.Spec.Containers[0].Image != "registry.east/web:1" {
		t.Errorf("seen with %d replicas of %s", got.Spec.Replicas, got.Spec.Template.Spec.Containers[0].Image)
	}
	if s := got.Status; s.Replicas != 3 || s.ReadyReplicas != 2 || s.AvailableReplicas != 1 || s.UnavailableReplicas != 2 {
		t.Errorf("status %+v", s)
	}
	if len(got.Annotations) != 2 || got.Annotations["note"] != "x" || len(got.Labels) != 0 || got.UID != "uid" || got.ResourceVersion != "1" {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
}

func TestAReplicaSetIsSeenWhereItsDeploymentIs(t *testing.T) {
	deployments, _ := stored(t, "deployments", deployment("web", 4, decision, both), deployment("theirs", 1, pin, "west"))
	owned := func(name, owner, uid string, pairs ...string) *apps.ReplicaSet {
		out := &apps.ReplicaSet{ObjectMeta: annotated(pairs...)}
		out.Name = name
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner, UID: types.UID(uid), Controller: new(bool)}}
		*out.OwnerReferences[0].Controller = true
		return out
	}
	s, _ := stored(t, "replicasets", owned("named-otherwise-there", "web", "uid", decision, `{"west":{"replicas":1}}`), owned("named-so", "web", "uid", decision, both),
		owned("of-an-earlier-one", "web", "other"), owned("of-none", "gone", "uid"), owned("theirs", "theirs", "uid", decision, `{"west":{"replicas":1}}`, pin, "west"))
	s.deployments = func() *store { return deployments }
	for name, want := range map[string]bool{"named-otherwise-there": true, "named-so": true, "of-an-earlier-one": false, "of-none": false, "theirs": false} {
		if _, err := s.Get(views.With(t.Context(), "east"), name, nil); (err == nil) != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := s.Delete(views.With(t.Context(), "east"), "named-so", all, nil); !apierrors.IsForbidden(err) {
		t.Errorf("what a Deployment makes is deleted: %v", err)
	}
}

func TestWhatIsMadeIsTheClustersAlone(t *testing.T) {
	ctx := views.With(t.Context(), "east")
	s, m := stored(t, "configmaps", configMap("common"))
	made, err := s.Create(ctx, configMap("blue", "note", "x"), func(_ context.Context, obj runtime.Object) error {
		if got := obj.(metav1.Object).GetAnnotations(); got[pin] != "east" || got[view] != "east" {
			return fmt.Errorf("admission is asked about %v", got)
		}
		return nil
	}, nil)
	if err != nil || made.(metav1.Object).GetAnnotations()[view] != "" || made.(metav1.Object).GetAnnotations()["note"] != "x" {
		t.Fatalf("made %v, %v", made, err)
	}
	if got := m.objects["blue"].(metav1.Object).GetAnnotations(); got[view] != "east" || got[pin] != "east" {
		t.Errorf("stored with %v", got)
	}
	if _, err := s.Create(ctx, configMap("common"), all, nil); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a name that all share: %v", err)
	}
	if _, err := s.Create(ctx, configMap("blue"), all, nil); !apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), "another namespace") {
		t.Errorf("a name that this view has: %v", err)
	}
	for name, object := range map[string]*api.ConfigMap{
		"pinned elsewhere":      configMap("a", pin, "west"),
		"pinned elsewhere also": configMap("a", pin, "east,west"),
		"of another view":       configMap("a", view, "west"),
	} {
		if _, err := s.Create(ctx, object, all, nil); err == nil || m.objects["a"] != nil {
			t.Errorf("%s: made", name)
		}
	}
	if _, err := s.Create(ctx, configMap("said", pin, " east "), all, nil); err != nil {
		t.Errorf("a pin that says the same: %v", err)
	}
	secrets, _ := stored(t, "secrets")
	token := &api.Secret{ObjectMeta: annotated(), Type: api.SecretTypeServiceAccountToken}
	if _, err := secrets.Create(ctx, token, all, nil); !apierrors.IsForbidden(err) {
		t.Errorf("a token that is good elsewhere: %v", err)
	}
	d, stock := stored(t, "deployments")
	if _, err := d.Create(ctx, deployment("web", 2), all, nil); err != nil {
		t.Fatal(err)
	}
	if got := stock.objects["web"].(metav1.Object).GetAnnotations(); got[pin] != "east" || got[view] != "" {
		t.Errorf("a workload is stored with %v", got)
	}
	// An apply makes as well.
	if _, made, err := s.Update(ctx, "applied", becomes(func(obj runtime.Object) { obj.(metav1.Object).SetName("applied") }), all, allUpdates, true, nil); err != nil || !made ||
		m.objects["applied"].(metav1.Object).GetAnnotations()[view] != "east" {
		t.Errorf("applied: made %t, %v", made, err)
	}
}

func TestWhatOthersHaveIsNotWritten(t *testing.T) {
	ctx := views.With(t.Context(), "east")
	s, m := stored(t, "configmaps", configMap("common"), configMap("green", view, "west", pin, "west"), configMap("pinned", pin, "east"))
	d, workloads := stored(t, "deployments", deployment("shared", 4, decision, both, pin, "east,west"), deployment("free", 1, decision, `{"east":{"replicas":1}}`), deployment("theirs", 1, pin, "west"))
	for _, of := range []struct {
		store *store
		names map[string]bool // with true what the view shows
	}{{s, map[string]bool{"common": true, "green": false, "pinned": true}}, {d, map[string]bool{"shared": true, "free": true, "theirs": false}}} {
		for name, seen := range of.names {
			if _, err := update(ctx, of.store, name, func(obj runtime.Object) { obj.(metav1.Object).SetLabels(map[string]string{"a": "b"}) }); seen && !apierrors.IsForbidden(err) ||
				!seen && !apierrors.IsNotFound(err) {
				t.Errorf("%s is changed: %v", name, err)
			}
			if _, _, err := of.store.Delete(ctx, name, all, nil); seen && !apierrors.IsForbidden(err) || !seen && !apierrors.IsNotFound(err) {
				t.Errorf("%s is deleted: %v", name, err)
			}
		}
	}
	if _, err := s.DeleteCollection(ctx, all, nil, nil); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("all are deleted: %v", err)
	}
	if len(m.objects) != 3 || len(workloads.objects) != 3 || m.version != 3 || workloads.version != 3 {
		t.Errorf("something was written")
	}
	v := &Viewed{stores: map[schema.GroupVersionResource]*store{{Version: "v1", Resource: "configmaps"}: s}}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if read, write := v.Check(ctx, configMaps, "", "common", false), v.Check(ctx, configMaps, "", "common", true); read != nil || !apierrors.IsForbidden(write) {
		t.Errorf("a part of what is shared: read %v, written %v", read, write)
	}
	if err := v.Check(ctx, configMaps, "", "green", false); !apierrors.IsNotFound(err) {
		t.Errorf("a part of what another has: %v", err)
	}
}

func TestAChangeIsMadeToTheObjectAndNotToWhatAnOverrideMadeOfIt(t *testing.T) {
	ctx := views.With(t.Context(), "east")
	s, m := stored(t, "deployments", deployment("web", 2, pin, "east", decision, `{"east":{"replicas":2}}`, breakdown, `{"east":{"replicas":2}}`))
	obj, err := update(ctx, s, "web", func(obj runtime.Object) {
		d := obj.(*apps.Deployment)
		d.Spec.Replicas = 5
		d.Spec.Template.Spec.Containers[1].Image = "log:2"
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, api.Container{Name: "more", Image: "more:1"})
		d.Labels = map[string]string{"team": "sea"}
		d.ResourceVersion = ""
		delete(d.Annotations, pin)
	})
	if err != nil {
		t.Fatal(err)
	}
	got := m.objects["web"].(*apps.Deployment)
	images := map[string]string{}
	for _, c := range got.Spec.Template.Spec.Containers {
		images[c.Name] = c.Image
	}
	if len(images) != 3 || images["web"] != "web:1" || images["log"] != "log:2" || images["more"] != "more:1" || got.Spec.Replicas != 5 || got.Labels["team"] != "sea" {
		t.Errorf("stored with %v, %d replicas, labels %v", images, got.Spec.Replicas, got.Labels)
	}
	if got.Annotations[pin] != "east" || got.Annotations[decision] == "" || got.Annotations[breakdown] == "" {
		t.Errorf("stored with %v", got.Annotations)
	}
	if seen := obj.(*apps.Deployment); seen.Spec.Template.Spec.Containers[0].Image != "registry.east/web:1" {
		t.Errorf("answered with %s", seen.Spec.Template.Spec.Containers[0].Image)
	}
	// What is taken away is gone, and a change of the overridden field itself is one.
	if _, err := update(ctx, s, "web", func(obj runtime.Object) {
		d := obj.(*apps.Deployment)
		d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[:1]
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
	}); err != nil {
		t.Fatal(err)
	}
	if got := m.objects["web"].(*apps.Deployment).Spec.Template.Spec.Containers; len(got) != 1 || got[0].Image != "web:2" {
		t.Errorf("stored with %v", got)
	}
	if _, err := update(ctx, s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Annotations[pin] = "west" }); !apierrors.IsInvalid(err) {
		t.Errorf("it is pinned elsewhere: %v", err)
	}
}

func TestWhatTheWriterHasSeenIsWhatIsCompared(t *testing.T) {
	ctx := views.With(t.Context(), "west") // where nothing is overridden
	s, m := stored(t, "configmaps", configMap("green", view, "west", pin, "west"))
	compared := ""
	info := becomes(func(obj runtime.Object) {
		obj.(metav1.Object).SetResourceVersion("7")
		obj.(metav1.Object).SetAnnotations(nil)
	})
	_, _, err := s.Update(ctx, "green", info, all, func(_ context.Context, obj, _ runtime.Object) error {
		compared = obj.(metav1.Object).GetResourceVersion()
		return nil
	}, false, nil)
	if err != nil || compared != "7" {
		t.Errorf("version %q, %v", compared, err)
	}
	if got := m.objects["green"].(metav1.Object).GetAnnotations(); got[view] != "west" || got[pin] != "west" {
		t.Errorf("stored with %v", got)
	}
	if _, gone, err := s.Delete(ctx, "green", all, nil); err != nil || !gone {
		t.Errorf("deleted: %t, %v", gone, err)
	}
}

func TestAWatchTellsWhatComesToTheClusterAndWhatLeavesIt(t *testing.T) {
	s, m := stored(t, "deployments")
	w, err := s.Watch(views.With(t.Context(), "east"), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := deployment("web", 4, decision, both)
	out := deployment("web", 4, decision, `{"west":{"replicas":4}}`)
	out.Spec.Template.Spec.Containers[0].Image = "secret"
	m.events.Add(deployment("theirs", 1, pin, "west")) // nobody has seen it
	m.events.Add(in)
	m.events.Modify(in)
	m.events.Modify(out) // it leaves
	m.events.Modify(out) // and is told to once
	m.events.Modify(in)  // it comes back
	m.events.Delete(in)
	m.events.Delete(deployment("theirs", 1, pin, "west"))
	m.events.Modify(deployment("listed", 1, pin, "west")) // it may have been in a list
	m.events.Modify(deployment("listed", 1, pin, "west"))
	m.events.Action(watch.Bookmark, &apps.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	m.events.Stop()
	var got []string
	for event := range w.ResultChan() {
		d := event.Object.(*apps.Deployment)
		text := string(event.Type) + " " + d.Name
		if event.Type == watch.Added || event.Type == watch.Modified {
			text += fmt.Sprintf(" %d", d.Spec.Replicas)
		}
		if strings.Contains(fmt.Sprint(d), "secret") || d.Annotations[decision] != "" {
			t.Errorf("%s tells %v", text, d)
		}
		got = append(got, text)
	}
	want := []string{"ADDED web 3", "MODIFIED web 3", "DELETED web", "ADDED web 3", "DELETED web", "DELETED listed", "BOOKMARK "}
	if !slices.Equal(got, want) {
		t.Errorf("told\n%q, want\n%q", got, want)
	}
}

// Not even the names of what others have made are told, whatever becomes of it.
func TestAWatchTellsNothingOfWhatWasNeverTheClusters(t *testing.T) {
	s, m := stored(t, "configmaps")
	w, err := s.Watch(views.With(t.Context(), "east"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m.events.Modify(configMap("theirs", view, "west", pin, "west"))
	m.events.Modify(configMap("theirs", view, "west", pin, "west"))
	m.events.Delete(configMap("theirs", view, "west", pin, "west"))
	m.events.Add(configMap("theirs")) // another one of the name, which all share
	m.events.Modify(configMap("shared"))
	m.events.Modify(configMap("mine", view, "east", pin, "east"))
	m.events.Stop()
	var got []string
	for event := range w.ResultChan() {
		got = append(got, string(event.Type)+" "+event.Object.(*api.ConfigMap).Name)
	}
	if want := []string{"ADDED theirs", "MODIFIED shared", "MODIFIED mine"}; !slices.Equal(got, want) {
		t.Errorf("told\n%q, want\n%q", got, want)
	}
}

func TestStorageThatOffersLessOrMoreThanViewsKnowIsRefused(t *testing.T) {
	for name, storage := range map[string]rest.Storage{"less": nothing{}, "more": connects{stock: &memory{}}} {
		if err := New(overridden, nil).Change(map[string]rest.Storage{"configmaps": storage}, ""); err == nil {
			t.Errorf("storage with %s is taken", name)
		}
	}
	v, storage := New(overridden, nil), map[string]rest.Storage{"configmaps": &memory{}, "resourcequotas": &memory{}, "events": &memory{}}
	if err := v.Change(storage, ""); err != nil {
		t.Fatal(err)
	}
	if _, ok := storage["resourcequotas"].(*memory); !ok || !v.Viewed(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}) {
		t.Errorf("changed %v", storage)
	}
}

type nothing struct{ rest.Storage }

type connects struct {
	stock
	rest.NamedCreater
}

func (connects) New() runtime.Object { return nil }
func (connects) Create(context.Context, string, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error) {
	return nil, nil
}
func (connects) Destroy() {}
