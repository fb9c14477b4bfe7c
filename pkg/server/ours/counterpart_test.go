package ours

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func known() (string, error) { return "logical", nil }

// live is what a cluster has, with the marks of what has that UID above, or without marks.
func live(uid, above string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: types.UID(uid)}
	if above != "" {
		meta.Labels = map[string]string{v1alpha1.LabelLogicalCluster: "logical"}
		meta.Annotations = map[string]string{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "web-1", v1alpha1.AnnotationUID: above,
		}
	}
	return meta
}

func TestARequestIsForThePodThatIsShownAndNoOther(t *testing.T) {
	const uid, cluster = v1alpha1.AnnotationPodUID, v1alpha1.AnnotationCluster
	for name, test := range map[string]struct {
		annotations map[string]string
		below       *metav1.ObjectMeta
		identity    Identity
		want        string
		refused     func(error) bool
	}{
		"a mirrored pod":                             {annotations: map[string]string{cluster: "east"}, below: new(live("above", ""))},
		"a pod of the user's own":                    {annotations: map[string]string{uid: "below"}, below: new(live("below", "above"))},
		"not one that has gone":                      {annotations: map[string]string{cluster: "east"}, want: `pods "web-1" not found in cluster "east"`, refused: apierrors.IsNotFound},
		"not the successor of a mirrored one":        {annotations: map[string]string{cluster: "east"}, below: new(live("next", "")), want: "its UID is not above", refused: apierrors.IsConflict},
		"not a stranger's that has the node's name":  {below: new(live("below", "")), want: `in cluster "east" namespace shop has another one of that name`, refused: apierrors.IsConflict},
		"not a stranger's with a UID that was known": {annotations: map[string]string{uid: "below"}, below: new(live("below", "")), want: "does not carry the label", refused: apierrors.IsConflict},
		"not what an earlier namesake left":          {annotations: map[string]string{uid: "below"}, below: new(live("below", "before")), want: "manifold.dev/uid is not above", refused: apierrors.IsConflict},
		"not what came after it":                     {annotations: map[string]string{uid: "below"}, below: new(live("next", "above")), want: "its UID is not below", refused: apierrors.IsConflict},
		"nothing while it is not known who we are": {annotations: map[string]string{uid: "below"}, below: new(live("below", "above")),
			identity: func() (string, error) { return "", errors.New("not read yet") }, want: "not read yet", refused: apierrors.IsInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			var client kubernetes.Interface = fake.NewClientset()
			if test.below != nil {
				client = fake.NewClientset(&corev1.Pod{ObjectMeta: *test.below})
			}
			identity := test.identity
			if identity == nil {
				identity = known
			}
			above := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "above", Annotations: test.annotations}}
			check(t, identity.Pod(t.Context(), client, "east", above), test.want, test.refused)
		})
	}
}

func TestARequestIsForTheServiceAndTheClaimThatAreProjected(t *testing.T) {
	above := metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "above"}
	for name, test := range map[string]struct {
		below   *metav1.ObjectMeta
		want    string
		refused func(error) bool
	}{
		"it":                    {below: new(live("below", "above"))},
		"nothing that is not":   {want: `not found in cluster "east"`, refused: apierrors.IsNotFound},
		"not a stranger's":      {below: new(live("below", "")), want: "does not carry the label", refused: apierrors.IsConflict},
		"not that of before it": {below: new(live("below", "before")), want: "manifold.dev/uid is not above", refused: apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			var client kubernetes.Interface = fake.NewClientset()
			if test.below != nil {
				client = fake.NewClientset(&corev1.Service{ObjectMeta: *test.below}, &corev1.PersistentVolumeClaim{ObjectMeta: *test.below})
			}
			for _, ask := range []func(context.Context) error{
				func(ctx context.Context) error { return Identity(known).Service(ctx, client, "east", &above) },
				func(ctx context.Context) error {
					_, err := Identity(known).Claim(ctx, client, "east", &above)
					return err
				},
			} {
				check(t, ask(t.Context()), test.want, test.refused)
			}
		})
	}
}

func check(t *testing.T, err error, want string, refused func(error) bool) {
	t.Helper()
	switch {
	case refused == nil && err != nil:
		t.Errorf("refused: %v", err)
	case refused != nil && (err == nil || !refused(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %s", err, want)
	case refused != nil && IsOther(err) == apierrors.IsInternalError(err):
		t.Errorf("whether it is another one is told wrongly: %v", err)
	}
}
