package pushes

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
)

var web = cache.ObjectName{Namespace: "shop", Name: "web"}

// hooked is an application whose pushes are signed by what Secret hook has.
func hooked() *v1alpha1.Application {
	app := following(nil)
	app.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-web"}
	app.Spec.Source.Git.Webhook = &v1alpha1.GitWebhook{SecretRef: v1alpha1.SecretReference{Name: "hook"}}
	return app
}

// newAnnouncer knows objects, and returns when it annotates, with the last patch.
func newAnnouncer(t *testing.T, answer error, objects ...runtime.Object) (a *Announcer, patches *[]time.Time, last *string) {
	t.Helper()
	apps, secrets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, object := range objects {
		store := apps
		if _, ok := object.(*corev1.Secret); ok {
			store = secrets
		}
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewClientset()
	patches, last = &[]time.Time{}, new(string)
	client.PrependReactor("patch", "applications", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*patches, *last = append(*patches, time.Now()), string(action.(clienttesting.PatchAction).GetPatch())
		return true, &v1alpha1.Application{}, answer
	})
	return NewAnnouncer(Options{
		Applications: deliverylisters.NewApplicationLister(apps), Secrets: corelisters.NewSecretLister(secrets), Client: client.DeliveryV1alpha1(),
		Recorder: record.NewFakeRecorder(100), Clock: clock.RealClock{},
	}), patches, last
}

func TestAFloodOfPushesIsFewWritesAndTheLastIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, patches, last := newAnnouncer(t, nil, hooked())
		done := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- a.Run(ctx) }()
		begin := time.Now()
		for range 1200 {
			a.Announce(web)
			time.Sleep(10 * time.Millisecond)
		}
		ended := time.Now()
		time.Sleep(time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(*patches); n != 4 || (*patches)[0].Sub(begin) > time.Second || (*patches)[n-1].Before(ended) {
			t.Errorf("12 seconds of pushes are %d writes at %v, want one at once, two meanwhile and one at the end", n, *patches)
		}
		var patch struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal([]byte(*last), &patch); err != nil || patch.Metadata.UID != "uid-of-web" || patch.Metadata.Annotations[v1alpha1.AnnotationRefresh] == "" {
			t.Errorf("the patch is %s (%v)", *last, err)
		}
	})
}

func TestAnApplicationThatIsGoneIsLeftAlone(t *testing.T) {
	resource := v1alpha1.SchemeGroupVersion.WithResource("applications").GroupResource()
	for name, test := range map[string]struct {
		answer  error
		objects []runtime.Object
		again   bool
	}{
		"it is":                        {answer: apierrors.NewNotFound(resource, "web"), objects: []runtime.Object{hooked()}},
		"it is another one":            {answer: apierrors.NewConflict(resource, "web", nil), objects: []runtime.Object{hooked()}},
		"it has never been":            {},
		"what may pass is tried again": {answer: apierrors.NewServiceUnavailable("not now"), objects: []runtime.Object{hooked()}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, _ := newAnnouncer(t, test.answer, test.objects...)
			if err := a.announce(t.Context(), web); (err != nil) != test.again {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestWhichSecretSignsPushes(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: data}
	}
	inline := hooked()
	inline.Spec.Source = v1alpha1.Source{Inline: &v1alpha1.InlineSource{}}
	plain := hooked()
	plain.Spec.Source.Git.Webhook = nil
	other := secret(map[string][]byte{v1alpha1.WebhookSecretToken: []byte(right)})
	other.Namespace = "other"
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"that which the application names":         {[]runtime.Object{hooked(), secret(map[string][]byte{v1alpha1.WebhookSecretToken: []byte(right)})}, right},
		"none without the key":                     {[]runtime.Object{hooked(), secret(map[string][]byte{"password": []byte(right)})}, ""},
		"none that is elsewhere":                   {[]runtime.Object{hooked(), other}, ""},
		"none of an application without a webhook": {[]runtime.Object{plain, secret(map[string][]byte{v1alpha1.WebhookSecretToken: []byte(right)})}, ""},
		"none of an application without git":       {[]runtime.Object{inline, secret(map[string][]byte{v1alpha1.WebhookSecretToken: []byte(right)})}, ""},
		"none of no application":                   {[]runtime.Object{secret(map[string][]byte{v1alpha1.WebhookSecretToken: []byte(right)})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, _ := newAnnouncer(t, nil, test.objects...)
			if _, got := a.Hook(web); string(got) != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
	a, _, _ := newAnnouncer(t, nil)
	a.Synced = []cache.InformerSynced{func() bool { return true }, func() bool { return false }}
	if a.HasSynced() {
		t.Error("it does not wait for its caches")
	}
}
