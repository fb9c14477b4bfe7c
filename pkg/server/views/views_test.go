package views

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestThePathOfAViewIsTakenOffAtTheOutside(t *testing.T) {
	for target, want := range map[string]struct {
		path, raw, cluster string
		code               int
	}{
		"/clusters/east/api/v1/pods?watch=1":        {path: "/api/v1/pods", cluster: "east"},
		"/clusters/east":                            {path: "/", cluster: "east"},
		"/clusters/east/clusters/west/api/v1/pods":  {path: "/clusters/west/api/v1/pods", cluster: "east"},
		"/clusters/east/api/v1/x%2Fy":               {path: "/api/v1/x/y", raw: "/api/v1/x%2Fy", cluster: "east"},
		"/clusters%2Feast/api/v1/pods":              {code: http.StatusBadRequest},
		"/clusters/%65ast/api/v1/a%2Fb":             {code: http.StatusBadRequest},
		"/api/v1/namespaces/clusters/east":          {path: "/api/v1/namespaces/clusters/east"},
		"/apis/manifold.dev/v1alpha1/clusters/east": {path: "/apis/manifold.dev/v1alpha1/clusters/east"},
	} {
		var seen *http.Request
		recorder, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil)
		Strip(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r })).ServeHTTP(recorder, r)
		if want.code != 0 {
			if recorder.Code != want.code || seen != nil {
				t.Errorf("%s is answered with %d, passed on: %t", target, recorder.Code, seen != nil)
			}
			continue
		}
		cluster, _ := From(seen.Context())
		if seen.URL.Path != want.path || seen.URL.RawPath != want.raw || cluster != want.cluster || seen.URL.RawQuery != r.URL.RawQuery {
			t.Errorf("%s becomes %s (%s) in the view of %q", target, seen.URL.Path, seen.URL.RawPath, cluster)
		}
		// The stock chain goes on with the audit context that it finds: what it refuses is told with the view as well.
		told := map[string]string{}
		if event := audit.AuditContextFrom(audit.WithAuditContext(seen.Context())); event != nil {
			told = event.GetEventAnnotations()
		}
		if told[auditKey] != want.cluster {
			t.Errorf("%s: the audit is told of the view of %q, want %q", target, told[auditKey], want.cluster)
		}
		if !strings.HasPrefix(target, r.URL.EscapedPath()) {
			t.Errorf("%s: the request itself was changed to %s", target, r.URL.EscapedPath())
		}
	}
}

// knows is an authenticator of one token for some audiences, as that of ServiceAccounts is.
func knows(audiences ...string) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		asked, _ := authenticator.AudiencesFrom(r.Context())
		common := asked.Intersect(audiences)
		if len(common) == 0 {
			return nil, false, errors.New("the token is for others")
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: "deployer"}, Audiences: common}, true, nil
	})
}

func TestATokenForAViewIsGoodThereAlone(t *testing.T) {
	api := authenticator.Audiences{"https://api"}
	for name, test := range map[string]struct {
		token   []string
		through string
		want    bool
	}{
		"in its view":                         {[]string{v1alpha1.ViewAudience("east")}, "east", true},
		"in another":                          {[]string{v1alpha1.ViewAudience("east")}, "west", false},
		"in one whose name begins as its own": {[]string{v1alpha1.ViewAudience("east")}, "east-2", false},
		"on the plain path":                   {[]string{v1alpha1.ViewAudience("east")}, "", false},
		"one for the API is good in a view":   {api, "east", true},
		"and on the plain path":               {api, "", true},
		"one for somebody else is not":        {[]string{"vault"}, "east", false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := authenticator.WithAudiences(t.Context(), api)
			if test.through != "" {
				ctx = With(ctx, test.through)
			}
			response, ok, err := Authenticator(knows(test.token...), api).AuthenticateRequest(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
			if ok != test.want || ok == (err != nil) {
				t.Fatalf("let in: %t, %v", ok, err)
			}
			if ok && len(response.Audiences.Intersect(api)) == 0 {
				t.Errorf("the server would not accept the audiences %v", response.Audiences)
			}
		})
	}
}

// objects are ConfigMaps, of which one is the cluster's and one is not.
type objects struct{}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func (objects) Viewed(resource schema.GroupVersionResource) bool {
	return resource == configMaps || resource.Resource == "pods" || resource.Resource == "services" || resource.Resource == "serviceaccounts"
}

func (objects) Check(ctx context.Context, resource schema.GroupVersionResource, subresource, name string, write bool) error {
	if namespace, _ := request.NamespaceFrom(ctx); namespace != "shop" {
		return apierrors.NewBadRequest("storage has to know the namespace")
	}
	if cluster, _ := From(ctx); name == "theirs" || cluster != "east" {
		return apierrors.NewNotFound(resource.GroupResource(), name)
	}
	if name == "shared" && write {
		return apierrors.NewForbidden(resource.GroupResource(), name, errors.New("shared"))
	}
	return nil
}

// allows is an authorizer for one user.
type allows string

func (a allows) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	right := attributes.GetVerb() == "use" && attributes.GetAPIGroup() == "manifold.dev" && attributes.GetResource() == "clusters" && attributes.GetSubresource() == "view" &&
		attributes.IsResourceRequest() && attributes.GetNamespace() == ""
	if right && attributes.GetUser().GetName() == string(a) && attributes.GetName() != "forbidden" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func handler(t *testing.T, clusters map[string]*v1alpha1.Cluster, next http.HandlerFunc) *Handler {
	t.Helper()
	return New(Options{
		Cluster: func(name string) *v1alpha1.Cluster { return clusters[name] }, Authorizer: allows("deployer"), Serializer: scheme.Codecs.WithoutConversion(),
		LongRunning: func(_ *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" },
		Objects:     objects{}, Ends: &Ends{running: map[string]map[*context.CancelFunc]struct{}{}},
	}, next)
}

func cluster(name string, change ...func(*v1alpha1.Cluster)) *v1alpha1.Cluster {
	out := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
	for _, c := range change {
		c(out)
	}
	return out
}

// through is a request as it comes through the stock chain.
func through(ctx context.Context, view, who, method, path string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		panic(err)
	}
	ctx = request.WithRequestInfo(request.WithUser(ctx, &user.DefaultInfo{Name: who}), info)
	if view != "" {
		ctx = With(ctx, view)
	}
	return r.WithContext(ctx)
}

func TestWhatAViewAnswers(t *testing.T) {
	const space = "/api/v1/namespaces/shop/"
	clusters := map[string]*v1alpha1.Cluster{
		"east": cluster("east"), "cordoned": cluster("cordoned", func(c *v1alpha1.Cluster) { c.Spec.Unschedulable = true }),
		"leaving": cluster("leaving", func(c *v1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }),
	}
	for name, test := range map[string]struct {
		view, who, method, path string
		code                    int
		says                    string
	}{
		"the plain path is nobody's business here":    {"", "anyone", http.MethodDelete, "/api/v1/nodes/n", 200, ""},
		"who may not use views reads nothing":         {"east", "other", http.MethodGet, space + "configmaps", 403, `may not \"use\" the view`},
		"nor learns which clusters there are":         {"nowhere", "other", http.MethodGet, space + "configmaps", 403, `may not \"use\" the view`},
		"the right may be to some":                    {"forbidden", "deployer", http.MethodGet, space + "configmaps", 403, `may not \"use\" the view`},
		"a cluster that there is not":                 {"nowhere", "deployer", http.MethodGet, space + "configmaps", 404, `clusters.manifold.dev \"nowhere\" not found`},
		"reading":                                     {"east", "deployer", http.MethodGet, space + "configmaps", 200, ""},
		"reading what all share":                      {"east", "deployer", http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/clusterroles", 200, ""},
		"what is served":                              {"east", "deployer", http.MethodGet, "/openapi/v3", 200, ""},
		"what is no object is not written":            {"east", "deployer", http.MethodPost, "/hooks/git/x", 403, "answers no post"},
		"writing what may be one cluster's":           {"east", "deployer", http.MethodPost, space + "configmaps", 200, ""},
		"writing to a cordoned cluster, as ever":      {"cordoned", "deployer", http.MethodPost, space + "configmaps", 200, ""},
		"nothing is sent to a cluster that goes":      {"leaving", "deployer", http.MethodPost, space + "configmaps", 403, "is being removed"},
		"but is deleted there":                        {"leaving", "deployer", http.MethodDelete, space + "configmaps/a", 200, ""},
		"and read":                                    {"leaving", "deployer", http.MethodGet, space + "configmaps/a", 200, ""},
		"writing what all share":                      {"east", "deployer", http.MethodPost, "/api/v1/namespaces", 403, "are not one cluster's"},
		"writing custom resources":                    {"east", "deployer", http.MethodPost, "/apis/example.com/v1/namespaces/shop/gizmos", 403, "are not one cluster's"},
		"another version of a kind":                   {"east", "deployer", http.MethodPost, "/api/v2/namespaces/shop/configmaps", 403, "are not one cluster's"},
		"deleting many at once":                       {"east", "deployer", http.MethodDelete, space + "configmaps", 403, "one by one"},
		"asking what one may":                         {"east", "deployer", http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 200, ""},
		"asking who one is":                           {"east", "deployer", http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", 200, ""},
		"no other question about tokens":              {"east", "deployer", http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", 403, "are not one cluster's"},
		"tokens":                                      {"east", "deployer", http.MethodPost, space + "serviceaccounts/a/token", 403, "would be good elsewhere"},
		"what a Service leads to":                     {"east", "deployer", http.MethodGet, space + "services/a/proxy", 403, "may lead to any cluster"},
		"what is read of a pod there":                 {"east", "deployer", http.MethodGet, space + "pods/ours/log", 200, ""},
		"of a pod elsewhere":                          {"east", "deployer", http.MethodGet, space + "pods/theirs/log", 404, "not found"},
		"a command in a pod elsewhere":                {"east", "deployer", http.MethodPost, space + "pods/theirs/exec", 404, "not found"},
		"a part of what is shared is read":            {"east", "deployer", http.MethodGet, space + "configmaps/shared/status", 200, ""},
		"and not written":                             {"east", "deployer", http.MethodPut, space + "configmaps/shared/status", 403, "shared"},
		"a watch":                                     {"east", "deployer", http.MethodGet, space + "configmaps?watch=1", 200, ""},
		"a collection in all namespaces is as before": {"east", "deployer", http.MethodGet, "/api/v1/configmaps", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			passed := false
			recorder := httptest.NewRecorder()
			handler(t, clusters, func(w http.ResponseWriter, _ *http.Request) { passed = true }).ServeHTTP(recorder, through(t.Context(), test.view, test.who, test.method, test.path))
			if recorder.Code != test.code || passed != (test.code == 200) || !strings.Contains(recorder.Body.String(), test.says) {
				t.Errorf("code %d, passed on %t: %s", recorder.Code, passed, recorder.Body)
			}
		})
	}
}

// noInformer hands out the handler that is registered.
type noInformer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (i *noInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return nil, nil
}

func TestAWatchEndsWithItsCluster(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(cache.ResourceEventHandler)
		ends    bool
	}{
		"when it is gone":         {func(h cache.ResourceEventHandler) { h.OnDelete(cluster("east")) }, true},
		"when that was seen late": {func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: cluster("east")}) }, true},
		"when it was made anew": {func(h cache.ResourceEventHandler) {
			h.OnUpdate(cluster("east", func(c *v1alpha1.Cluster) { c.UID = "earlier" }), cluster("east"))
		}, true},
		"not when another one goes":      {func(h cache.ResourceEventHandler) { h.OnDelete(cluster("west")) }, false},
		"not when it changes":            {func(h cache.ResourceEventHandler) { h.OnUpdate(cluster("east"), cluster("east")) }, false},
		"not when it is there once more": {func(h cache.ResourceEventHandler) { h.OnAdd(cluster("east"), false) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			informer := &noInformer{}
			ends, err := NewEnds(informer)
			if err != nil {
				t.Fatal(err)
			}
			h := handler(t, map[string]*v1alpha1.Cluster{"east": cluster("east")}, func(_ http.ResponseWriter, r *http.Request) {
				test.happens(informer.handler)
				if ended := r.Context().Err() != nil; ended != test.ends {
					t.Errorf("ended: %t", ended)
				}
			})
			h.Ends = ends
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, through(t.Context(), "east", "deployer", http.MethodGet, "/api/v1/configmaps?watch=1"))
			if recorder.Code != 200 {
				t.Errorf("code %d: %s", recorder.Code, recorder.Body)
			}
			if len(ends.running) != 0 {
				t.Errorf("what is over is remembered: %v", ends.running)
			}
		})
	}
}

func TestAWatchThatBeginsWhileItsClusterGoesIsNotBegun(t *testing.T) {
	answers := []*v1alpha1.Cluster{cluster("east"), nil}
	h := handler(t, nil, func(http.ResponseWriter, *http.Request) { t.Error("it begins") })
	h.Cluster = func(string) *v1alpha1.Cluster {
		next := answers[0]
		answers = slices.Delete(answers, 0, 1)
		return next
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, through(t.Context(), "east", "deployer", http.MethodGet, "/api/v1/configmaps?watch=1"))
	if recorder.Code != http.StatusNotFound {
		t.Errorf("code %d", recorder.Code)
	}
}
