package delivery

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/registry/group"
	"github.com/manifold-dev/manifold/pkg/registry/group/grouptest"
)

// Who writes an Application is answered after that was told, and nobody is told of what is not stored, or of a status.
func TestWhoWritesAnApplicationIsAnsweredOnceThatIsTold(t *testing.T) {
	var told []string
	api := grouptest.API{Install: Install, Group: func(typer runtime.ObjectTyper) group.Group {
		return Group(typer, func(object runtime.Object) {
			app := object.(*v1alpha1.Application)
			told = append(told, cache.MetaObjectToName(app).Name+" "+string('0'+rune(app.Generation)))
		})
	}}
	client, err := versioned.NewForConfig(api.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	applications := client.DeliveryV1alpha1().Applications("shop")
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	app.Spec.Source.Selector = &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	if _, err := applications.Create(t.Context(), app, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if app, err = applications.Create(t.Context(), app, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	app.Status.LatestRevision = "web-v1"
	if app, err = applications.UpdateStatus(t.Context(), app, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	app.Spec.Source.Selector.MatchLabels["app"] = "api"
	if _, err = applications.Update(t.Context(), app, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"web 1", "web 2"}; !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
}
