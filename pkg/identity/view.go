package identity

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// MadeThrough returns the clusters through whose views an object was made that goes where workloads need it, none if it was made through no view.
func MadeThrough(above metav1.Object) []string {
	text := above.GetAnnotations()[v1alpha1.AnnotationView]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// OfAnotherView reports whether an object that goes where workloads need it was made through the views of other clusters, and so is no business of
// this one.
func OfAnotherView(above metav1.Object, cluster string) bool {
	through := MadeThrough(above)
	return len(through) > 0 && !slices.Contains(through, cluster)
}

// Viewed reports whether several clusters hold an object, each as it was written through its own view. It is quick to ask.
func Viewed(above metav1.Object) bool { return above.GetAnnotations()[v1alpha1.AnnotationViews] != "" }

// ViewsOf returns what clusters hold of an object by their views, nil if they all hold what it says. What does not parse counts as none: it is Manifold's.
func ViewsOf(above metav1.Object) v1alpha1.Views {
	if !Viewed(above) {
		return nil
	}
	views, err := v1alpha1.ParseViews(above.GetAnnotations()[v1alpha1.AnnotationViews])
	if err != nil {
		return nil
	}
	return views
}

// viewed is what the name of a revision begins with that is the content of a view. No ApplicationRevision can have such a name.
const viewed = "view:"

// RevisionOf returns what a cluster holds of an object by its view, as a revision of it.
func RevisionOf(view v1alpha1.View) Revision {
	if view.Content == "" {
		return Revision{}
	}
	return Revision{Name: viewed + view.Content, Target: view.Cluster}
}

// ViewContent returns the name of the content that a revision stands for, false if it is one of an application.
func (r Revision) ViewContent() (name string, ok bool) { return strings.CutPrefix(r.Name, viewed) }

// OfView reports whether a revision is what was written through the view of a cluster.
func (r Revision) OfView() bool { return strings.HasPrefix(r.Name, viewed) }

// mostContent bounds what is unpacked of one content. More than this no object of the logical cluster can be.
const mostContent = 4 << 20

// ErrNoContent is wrapped by errors about contents of views that an object does not have, or not any more.
var ErrNoContent = errors.New("is not there")

// Contents are what clusters hold by their views, by their names, as AnnotationViewContents has them.
type Contents map[string]string

// ContentsOf returns the contents that an object carries.
func ContentsOf(above metav1.Object) (Contents, error) {
	text := above.GetAnnotations()[v1alpha1.AnnotationViewContents]
	if text == "" {
		return Contents{}, nil
	}
	out := Contents{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("parse annotation %s: %w", v1alpha1.AnnotationViewContents, err)
	}
	return out, nil
}

// String writes the contents as ContentsOf reads them, "" if there are none.
func (c Contents) String() string {
	if len(c) == 0 {
		return ""
	}
	data, err := json.Marshal(map[string]string(c))
	if err != nil {
		return "" // strings always encode
	}
	return string(data)
}

// Add adds a manifest, and returns its name, which is that of no other manifest.
func (c Contents) Add(manifest []byte) (name string, err error) {
	name = nameOf(manifest)
	if _, known := c[name]; known {
		return name, nil
	}
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := writer.Write(manifest); err != nil {
		return "", err
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	c[name] = base64.StdEncoding.EncodeToString(packed.Bytes())
	return name, nil
}

// Get returns a manifest, which is what its name says or an error. The error wraps ErrNoContent for one that is not there.
func (c Contents) Get(name string) (manifest []byte, err error) {
	text, has := c[name]
	if !has {
		return nil, fmt.Errorf("content %q of a view %w", name, ErrNoContent)
	}
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("read content %q of a view: %w", name, err) }
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fail(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fail(err)
	}
	manifest, err = io.ReadAll(io.LimitReader(reader, mostContent+1))
	switch {
	case err != nil:
		return fail(err)
	case len(manifest) > mostContent:
		return fail(fmt.Errorf("it has more than %d bytes", mostContent))
	case nameOf(manifest) != name:
		return fail(errors.New("it is not what its name says"))
	}
	return manifest, nil
}

// nameOf names a manifest by half of its hash, which is more than anybody can find a second one for.
func nameOf(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return hex.EncodeToString(sum[:16])
}
