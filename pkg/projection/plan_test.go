package projection

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// edited returns a copy of an object with something changed.
func edited[T Object](in T, edit func(T)) T {
	out := in.DeepCopyObject().(T)
	edit(out)
	return out
}

// webDeployment is what the user has upstream.
func webDeployment() *appsv1.Deployment {
	in := &appsv1.Deployment{ObjectMeta: named("shop", "web")}
	in.Labels = map[string]string{"app": "web"}
	in.Spec.Replicas = ptr.To[int32](5)
	in.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	in.Spec.Template.Labels = map[string]string{"app": "web"}
	in.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	return in
}

func TestPlanForADeployment(t *testing.T) {
	kind := kindOf(t, webDeployment())
	desired := project(t, kind, webDeployment(), placement.Share{Replicas: 3}).(*appsv1.Deployment)
	live := edited(desired, func(d *appsv1.Deployment) {
		d.UID, d.ResourceVersion, d.Generation = "below", "4", 2
		d.Spec.RevisionHistoryLimit = ptr.To[int32](10)
		d.Status.Replicas = 3
	})
	unmark := func(d *appsv1.Deployment) { delete(d.Labels, v1alpha1.LabelLogicalCluster) }
	annotate := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Annotations[key] = value }
	}
	deleting := func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }
	tests := map[string]struct {
		live       Object
		want       Step
		wantReason string
	}{
		"nothing of that name":                    {nil, Create, ""},
		"a nil pointer of the right type":         {(*appsv1.Deployment)(nil), Create, ""},
		"the projection with defaults and status": {live, Nothing, ""},
		"an object without marks is somebody's": {
			edited(live, unmark), Conflict, "already has a Deployment shop/web that Manifold does not own",
		},
		"an object without marks that is being deleted is still somebody's": {
			edited(edited(live, unmark), deleting), Conflict, "does not own",
		},
		"an object of another logical cluster": {
			edited(live, func(d *appsv1.Deployment) { d.Labels[v1alpha1.LabelLogicalCluster] = "other" }),
			Conflict, "belongs to another logical cluster, other",
		},
		"the projection of an object of another name": {
			edited(live, annotate(v1alpha1.AnnotationName, "api")), Conflict, "is the projection of shop/api",
		},
		"the projection of an object of another namespace": {
			edited(live, annotate(v1alpha1.AnnotationNamespace, "bar")), Conflict, "is the projection of bar/web",
		},
		"a projection that is being deleted": {edited(live, deleting), Wait, ""},
		"the projection of a namesake that is gone upstream": {
			edited(live, annotate(v1alpha1.AnnotationUID, "uid-0")), Replace, "made anew",
		},
		"an older projection": {edited(live, annotate(v1alpha1.AnnotationProjection, "0123456789abcdef")), Apply, "another projection"},
		"replicas that were changed in the cluster": {
			edited(live, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](9) }), Apply, "changed in the cluster",
		},
		"a label that was removed in the cluster": {
			edited(live, func(d *appsv1.Deployment) { delete(d.Labels, "app") }), Apply, "changed in the cluster",
		},
		"labels and annotations that were added in the cluster": {
			edited(live, func(d *appsv1.Deployment) {
				d.Labels["team"] = "blue"
				d.Annotations["deployment.kubernetes.io/revision"] = "3"
			}), Nothing, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := kind.Plan(desired, test.live)
			if got.Step != test.want || got.Reason == "" || !strings.Contains(got.Reason, test.wantReason) {
				t.Errorf("Plan = %+v, want %s because of %q", got, test.want, test.wantReason)
			}
		})
	}
}

func TestPlanForDependents(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: named("shop", "settings"), Data: map[string]string{"a": "1"}}
	fixed := edited(config, func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true) })
	secret := &corev1.Secret{ObjectMeta: named("shop", "password"), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": {1}}}
	sealed := edited(secret, func(s *corev1.Secret) { s.Immutable = ptr.To(true) })
	service := &corev1.Service{ObjectMeta: named("shop", "web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}}
	config2 := func(in *corev1.ConfigMap) *corev1.ConfigMap {
		return edited(in, func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	}
	secret2 := func(in *corev1.Secret) *corev1.Secret {
		return edited(in, func(s *corev1.Secret) { s.Data["a"] = []byte{2} })
	}
	binary := edited(fixed, func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"b": {1}} })
	typed := edited(secret, func(s *corev1.Secret) { s.Type = corev1.SecretTypeBasicAuth })
	headless := edited(service, func(s *corev1.Service) { s.Spec.ClusterIP = "None" })
	external := edited(service, func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("shop", "data")}
	anew := func(in Object) Object { return edited(in, func(o Object) { o.SetUID("uid-2") }) }
	tests := map[string]struct {
		before, now Object
		want        Step
	}{
		"content that changed is applied":                    {config, config2(config), Apply},
		"an object that was made anew is applied over":       {config, anew(config), Apply},
		"immutable content that is the same is kept":         {fixed, anew(fixed), Apply},
		"immutable content that differs is replaced":         {fixed, anew(config2(fixed)), Replace},
		"binary content that differs is replaced as well":    {fixed, anew(binary), Replace},
		"a ConfigMap made mutable again is replaced":         {fixed, anew(config), Replace},
		"a ConfigMap that becomes immutable is applied":      {config, fixed, Apply},
		"a Secret of another type is replaced":               {secret, anew(typed), Replace},
		"an immutable Secret that differs is replaced":       {sealed, anew(secret2(sealed)), Replace},
		"a Secret made mutable again is replaced":            {sealed, anew(secret), Replace},
		"a mutable Secret that differs is applied":           {secret, secret2(secret), Apply},
		"a Service that becomes headless is replaced":        {service, anew(headless), Replace},
		"a Service that becomes an external name is applied": {service, external, Apply},
		"a claim that was made anew has no old data":         {claim, anew(claim), Replace},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(t, test.now)
			live := project(t, kind, test.before, placement.Share{})
			if got := kind.Plan(project(t, kind, test.now, placement.Share{}), live); got.Step != test.want {
				t.Errorf("Plan = %+v, want %s", got, test.want)
			}
		})
	}
}

func TestPlanTakesOverTheDefaultServiceAccountInNamespacesOfOurs(t *testing.T) {
	for namespace, want := range map[string]Step{"shop": Apply, "default": Conflict} {
		in := &corev1.ServiceAccount{
			ObjectMeta: named(namespace, "default"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		}
		kind := kindOf(t, in)
		live := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default", UID: "below"}}
		if got := kind.Plan(project(t, kind, in, placement.Share{}), live); got.Step != want {
			t.Errorf("in namespace %s: Plan = %+v, want %s", namespace, got, want)
		}
	}
}

func TestPlanRemoval(t *testing.T) {
	kind := kindOf(t, webDeployment())
	live := project(t, kind, webDeployment(), placement.Share{}).(*appsv1.Deployment)
	origin, _ := OriginOf(live)
	other := origin
	other.UID = "uid-2"
	whoever := origin
	whoever.UID = ""
	tests := map[string]struct {
		origin Origin
		live   Object
		want   Step
	}{
		"nothing there":                         {origin, nil, Nothing},
		"our projection":                        {origin, live, Delete},
		"our projection, of whichever namesake": {whoever, live, Delete},
		"the projection of a namesake":          {other, live, Nothing},
		"an object without marks": {
			origin, edited(live, func(d *appsv1.Deployment) { delete(d.Labels, v1alpha1.LabelLogicalCluster) }), Nothing,
		},
		"an object of another logical cluster": {
			whoever, edited(live, func(d *appsv1.Deployment) { d.Labels[v1alpha1.LabelLogicalCluster] = "other" }), Nothing,
		},
		"our projection on its way out": {
			origin, edited(live, func(d *appsv1.Deployment) { d.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0))) }), Wait,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := PlanRemoval(test.origin, test.live); got.Step != test.want || got.Reason == "" {
				t.Errorf("PlanRemoval = %+v, want %s", got, test.want)
			}
		})
	}
}
