package identity

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatWasMadeThroughAViewIsThatClustersAlone(t *testing.T) {
	for view, want := range map[string]bool{"": false, "east": false, "west": true} {
		above := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationView: view}}
		if got := OfAnotherView(above, "east"); got != want {
			t.Errorf("made through %q, it is of another view than east: %t", view, got)
		}
	}
	if OfAnotherView(&metav1.ObjectMeta{}, "east") {
		t.Error("what was made through no view is of another one")
	}
}

func TestWhatWasMadeThroughSeveralViewsIsTheirsAlone(t *testing.T) {
	above := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationView: "east,west"}}
	for cluster, want := range map[string]bool{"east": false, "west": false, "north": true, "eas": true} {
		if got := OfAnotherView(above, cluster); got != want {
			t.Errorf("it is of another view than %s: %t", cluster, got)
		}
	}
}

func TestTheRevisionOfAClusterIsWhatWasWrittenThroughItsView(t *testing.T) {
	above := deployment(`{"east":{"replicas":1,"revision":"web-v1","target":"eu"},"west":{"replicas":1}}`, `{"south":{"revision":"view:old","target":"south"}}`)
	above.Annotations[v1alpha1.AnnotationViews] = `[{"cluster":"east"},{"cluster":"west","content":"abc"}]`
	for cluster, want := range map[string]Revision{"east": {}, "west": {"view:abc", "west"}, "south": {"view:old", "south"}} {
		if got := RevisionIn(above, cluster); got != want {
			t.Errorf("%s holds %+v, want %+v", cluster, got, want)
		}
	}
	if name, viewed := RevisionIn(above, "west").ViewContent(); !viewed || name != "abc" || !NamesRevisions(above) || !Viewed(above) || (Revision{Name: "web-v1"}).OfView() {
		t.Errorf("the content is %q", name)
	}
	if got := RevisionsOf(above); len(got) != 3 {
		t.Errorf("%v", got)
	}
	above.Annotations[v1alpha1.AnnotationViews] = `[{"cluster":"east"}]` // which nobody can have written
	if ViewsOf(above) != nil {
		t.Error("what does not parse counts")
	}
}

func FuzzContentsAreWhatTheirNamesSay(f *testing.F) {
	f.Add([]byte(`{"kind":"ConfigMap"}`), "H4sIAAAAAAAA/wEAAP//AAAAAAAAAAA=")
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, manifest []byte, forged string) {
		contents := Contents{}
		name, err := contents.Add(manifest)
		if err != nil {
			t.Fatal(err)
		}
		above := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationViewContents: contents.String()}}
		read, err := ContentsOf(above)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.Get(name)
		if err != nil || string(got) != string(manifest) {
			t.Errorf("%q, %v", got, err)
		}
		if forged == read[name] {
			return
		}
		read[name] = forged
		if got, err := read.Get(name); err == nil && string(got) != string(manifest) {
			t.Errorf("%q is taken for %q", got, manifest)
		}
	})
}

func TestContentsThatAreNotThereOrNotWhatTheyShouldBeAreErrors(t *testing.T) {
	contents := Contents{}
	large, err := contents.Add(make([]byte, mostContent+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contents.Get(large); err == nil {
		t.Error("what unpacks to more than any object is read")
	}
	if _, err := contents.Get("none"); !errors.Is(err, ErrNoContent) {
		t.Errorf("error %v", err)
	}
	if _, err := ContentsOf(&metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationViewContents: "["}}); err == nil {
		t.Error("what is no JSON is read")
	}
	if got, err := ContentsOf(&metav1.ObjectMeta{}); err != nil || got.String() != "" {
		t.Errorf("%v, %v", got, err)
	}
}
