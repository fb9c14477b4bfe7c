package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json" // it keeps whole numbers whole

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// Routes are the fields of an object that clusters hold otherwise than it says, by the name of the cluster: the shares of requests may differ from
// cluster to cluster, and are nobody's to write but delivery's.
type Routes map[string]Fields

// Fields are what a cluster holds otherwise, by the JSON pointer of the field.
type Fields map[string]Field

// Field is what a cluster holds in a field.
type Field struct {
	// Of is the hash of what the object itself says there, see RouteHash; "" if that does not matter. Where it says anything else by now, the
	// cluster holds the object as it stands: a value was not made for a field that has changed.
	Of string `json:"of,omitempty"`
	Is any    `json:"is"`
}

// routable are the fields that may be held otherwise: those by which requests are shared out, and none that would get past what is asked of an object.
var routable = map[schema.GroupKind]*regexp.Regexp{
	{Kind: "Service"}: regexp.MustCompile(`^/spec/selector/[^/]+$`),
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: regexp.MustCompile(`^/spec/rules/[0-9]+/backendRefs$`),
	{Group: "networking.istio.io", Kind: "VirtualService"}:  regexp.MustCompile(`^/spec/http/[0-9]+/route$`),
	{Group: "networking.k8s.io", Kind: "Ingress"}: regexp.MustCompile(
		`^(/spec/rules/[0-9]+/http/paths|/metadata/annotations/nginx\.ingress\.kubernetes\.io~1canary-weight)$`),
}

// Routable reports whether clusters may hold fields of objects of a kind otherwise.
func Routable(kind schema.GroupKind) bool { return routable[kind] != nil }

// RoutesOf reads the routes that an object carries. What cannot be read counts as none.
func RoutesOf(above metav1.Object) Routes {
	text := above.GetAnnotations()[delivery.AnnotationRoutes]
	if text == "" {
		return nil
	}
	var out Routes
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		return nil
	}
	return out
}

// String returns the routes as compact JSON, the same for equal routes, and "" for none.
func (r Routes) String() string {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(_ string, fields Fields) bool { return len(fields) == 0 })
	if len(out) == 0 {
		return ""
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "" // What came from JSON always encodes.
	}
	return string(text)
}

// Mark is what an object is marked with that a cluster holds with these fields, "" for none.
func (f Fields) Mark() string {
	if len(f) == 0 {
		return ""
	}
	return RouteHash(f)
}

// RouteHash is the hash of a value in a field.
func RouteHash(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // What came from JSON always encodes.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// RouteMark is the mark of the fields that an object in a cluster holds otherwise.
func RouteMark(live metav1.Object) string { return live.GetAnnotations()[delivery.AnnotationRoutes] }

// routed gives a projection what its cluster holds otherwise, and the mark of that. Where a field is not what the routes were made for, the projection
// stays as the object says, without a mark.
func (k Kind) routed(in, out Object, cluster string) (Object, error) {
	annotations := out.GetAnnotations() // of an unstructured object a copy
	if annotations[delivery.AnnotationRoutes] == "" {
		return out, nil
	}
	delete(annotations, delivery.AnnotationRoutes)
	out.SetAnnotations(annotations)
	fields, may := RoutesOf(in)[cluster], routable[k.GVK.GroupKind()]
	if len(fields) == 0 || may == nil {
		return out, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return nil, err
	}
	content = runtime.DeepCopyJSON(content)
	for _, pointer := range slices.Sorted(maps.Keys(fields)) {
		if !may.MatchString(pointer) || fields[pointer].set(content, pointer) != nil {
			return out, nil
		}
	}
	changed := k.New()
	if _, custom := changed.(*unstructured.Unstructured); custom {
		changed = &unstructured.Unstructured{Object: content}
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, changed); err != nil {
		return out, nil
	}
	if annotations = changed.GetAnnotations(); annotations == nil {
		annotations = map[string]string{}
	}
	annotations[delivery.AnnotationRoutes] = fields.Mark()
	changed.SetAnnotations(annotations)
	return changed, nil
}

// set gives an object the value of a field.
func (f Field) set(object map[string]any, pointer string) error {
	steps := strings.Split(pointer[1:], "/")
	var at any = object
	for i, step := range steps {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch parent := at.(type) {
		case map[string]any:
			if i == len(steps)-1 {
				if f.Of != "" && RouteHash(parent[step]) != f.Of {
					return errors.New("it has changed since")
				}
				parent[step] = runtime.DeepCopyJSONValue(f.Is)
				return nil
			}
			at = parent[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(parent) {
				return fmt.Errorf("%s: there is no entry %s", pointer, step)
			}
			at = parent[n]
		default:
			return fmt.Errorf("%s: there is no %s", pointer, step)
		}
	}
	return fmt.Errorf("%s: it is an entry of a list", pointer)
}
