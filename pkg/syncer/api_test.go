package syncer

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func binding(namespace string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rights"}, Subjects: subjects}
}

func toAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

func saying(value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationAPI: value}
	}
}

func mounting(token bool) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.AutomountServiceAccountToken = ptr.To(token) }
}

// bringingToken has a volume with a token for an audience, "" for the API server.
func bringingToken(audience string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "token"}},
			}},
		}})
	}
}

// withRights is a logical cluster, which pods can reach, with bindings and other objects.
func withRights(t *testing.T, bindings []any, objects ...projection.Object) *Upstream {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	u := newUpstreamOf(t, factory, objects...)
	u.Access.API = projection.API{Host: "manifold.example", Port: "443", Authority: "PEM"}
	for _, b := range bindings {
		store := factory.Rbac().V1().RoleBindings().Informer().GetStore()
		if _, wide := b.(*rbacv1.ClusterRoleBinding); wide {
			store = factory.Rbac().V1().ClusterRoleBindings().Informer().GetStore()
		}
		if err := store.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func TestWhichWorkloadsCallTheLogicalCluster(t *testing.T) {
	wide := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rights"}, Subjects: []rbacv1.Subject{toAccount("shop", "operator")}}
	silent := account("operator")
	silent.AutomountServiceAccountToken = ptr.To(false)
	for name, test := range map[string]struct {
		bindings    []any
		account     *corev1.ServiceAccount
		change      []func(*appsv1.Deployment)
		want, token bool
	}{
		"nothing gives its account rights": {change: []func(*appsv1.Deployment){runningAs("operator")}},
		"its account has rights": {
			bindings: []any{binding("shop", toAccount("shop", "operator"))}, change: []func(*appsv1.Deployment){runningAs("operator")}, want: true, token: true,
		},
		"its account has rights everywhere": {bindings: []any{wide}, change: []func(*appsv1.Deployment){runningAs("operator")}, want: true, token: true},
		"its account wants no token":        {bindings: []any{wide}, account: silent, change: []func(*appsv1.Deployment){runningAs("operator")}},
		"it wants no token":                 {bindings: []any{wide}, change: []func(*appsv1.Deployment){runningAs("operator"), mounting(false)}},
		"it wants a token and its account does not": {
			bindings: []any{wide}, account: silent, change: []func(*appsv1.Deployment){runningAs("operator"), mounting(true)}, want: true, token: true,
		},
		"it wants the token in a volume of its own alone": {
			bindings: []any{wide}, account: silent, change: []func(*appsv1.Deployment){runningAs("operator"), bringingToken("")}, want: true,
		},
		"it wants a token for somebody else alone": {
			bindings: []any{wide}, account: silent, change: []func(*appsv1.Deployment){runningAs("operator"), bringingToken("vault")},
		},
		"it wants no token and says that it calls the logical cluster": {
			account: silent, change: []func(*appsv1.Deployment){runningAs("operator"), saying(v1alpha1.APILogical)}, want: true,
		},
		"all accounts of the namespace have": {
			bindings: []any{binding("shop", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:shop"})}, want: true, token: true,
		},
		"another account has":                   {bindings: []any{wide}},
		"the one that pods run as by default":   {bindings: []any{binding("shop", toAccount("shop", "default"))}, want: true, token: true},
		"somebody elsewhere binds its account":  {bindings: []any{binding("evil", toAccount("shop", "operator"))}, change: []func(*appsv1.Deployment){runningAs("operator")}},
		"it says so without any rights":         {change: []func(*appsv1.Deployment){saying(v1alpha1.APILogical)}, want: true, token: true},
		"it says otherwise in spite of rights":  {bindings: []any{wide}, change: []func(*appsv1.Deployment){runningAs("operator"), saying(v1alpha1.APICluster)}},
		"an account of that name has elsewhere": {bindings: []any{binding("bank", toAccount("bank", "operator"))}, change: []func(*appsv1.Deployment){runningAs("operator")}},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", `{"east":{"replicas":1}}`, test.change...)
			objects := []projection.Object{above}
			if test.account != nil {
				objects = append(objects, test.account)
			}
			u := withRights(t, test.bindings, objects...)
			kind, _ := projection.KindOf(above)
			got := u.Access.Of(identity.Workload{Kind: kind, Object: above}, nil)
			if (got != nil) != test.want || got != nil && got.Token != test.token {
				t.Errorf("it is given %+v", got)
			}
			if u.Access.API.Token {
				t.Error("what all are given was changed")
			}
		})
	}
}

// Rights that come to a ServiceAccount change nothing in a cluster for pods without a token, whose template would have them replaced.
func TestRightsThatComeReplaceNoPodsWithoutAToken(t *testing.T) {
	silent := account("operator")
	silent.AutomountServiceAccountToken = ptr.To(false)
	rights := []any{binding("shop", toAccount("shop", "operator"))}
	for name, test := range map[string]struct {
		account *corev1.ServiceAccount
		change  func(*appsv1.Deployment)
		replace bool
	}{
		"it says that it wants none":  {account: account("operator"), change: mounting(false)},
		"its account says so":         {account: silent, change: func(*appsv1.Deployment) {}},
		"it has one, unlike the rest": {account: account("operator"), change: func(*appsv1.Deployment) {}, replace: true},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", toEast, runningAs("operator"), test.change)
			kind, _ := projection.KindOf(above)
			project := func(u *Upstream, live projection.Object) projection.Object {
				t.Helper()
				part := projection.Part{Share: placement.Share{Replicas: 2}, API: u.Access.Of(identity.Workload{Kind: kind, Object: above}, live)}
				out, err := kind.Project(above, part, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			live := project(withRights(t, nil, above, test.account), nil)
			desired := project(withRights(t, rights, above, test.account), live)
			if replaced := kind.MakesPods(desired, live); replaced != test.replace {
				t.Errorf("rights replace its pods: %t, want %t", replaced, test.replace)
			}
			if same := projection.HashOf(desired) == projection.HashOf(live); same == test.replace {
				t.Errorf("its projection stays as it was: %t", same)
			}
		})
	}
}

func TestAnAccountThatComesToMountTokensHasItsWorkloadsLookedAt(t *testing.T) {
	silent := account("operator")
	silent.AutomountServiceAccountToken = ptr.To(false)
	labelled := account("operator")
	labelled.Labels = map[string]string{"team": "shop"}
	for name, test := range map[string]struct {
		before, after *corev1.ServiceAccount
		want          []string
	}{
		"it comes to mount them":  {silent, account("operator"), []string{"deployments shop/web", "serviceaccounts shop/operator"}},
		"something else of it is": {account("operator"), labelled, []string{"serviceaccounts shop/operator"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := withRights(t, nil, deployment("web", toEast, runningAs("operator")), test.after)
			s := attach(t, u, "east")
			kind, _ := projection.KindOf(test.after)
			u.router.Route(kind, test.before, test.after)
			if diff := cmp.Diff(test.want, s.enqueued()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRightsThatGoAwayReplaceNoPods(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":1}}`, runningAs("operator"), saying(v1alpha1.APILogical))
	u := withRights(t, nil, above)
	kind, _ := projection.KindOf(above)
	share := projection.Part{Share: placement.Share{Replicas: 1}, API: u.Access.Of(identity.Workload{Kind: kind, Object: above}, nil)}
	project := func(of *appsv1.Deployment) projection.Object {
		t.Helper()
		out, err := kind.Project(of, share, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	unsaid := deployment("web", `{"east":{"replicas":1}}`, runningAs("operator"))
	live := project(unsaid)

	if got := u.Access.Of(identity.Workload{Kind: kind, Object: unsaid}, live); got == nil || !got.Token {
		t.Errorf("with the same template it is given %+v", got)
	}
	scaled := unsaid.DeepCopy()
	scaled.Spec.Replicas = ptr.To[int32](9)
	if got := u.Access.Of(identity.Workload{Kind: kind, Object: scaled}, live); got == nil {
		t.Error("scaling took the API away")
	}
	changed := unsaid.DeepCopy()
	changed.Spec.Template.Labels["version"] = "2"
	if got := u.Access.Of(identity.Workload{Kind: kind, Object: changed}, live); got != nil {
		t.Errorf("with another template it is given %+v", got)
	}
	said := unsaid.DeepCopy()
	saying(v1alpha1.APICluster)(said)
	if got := u.Access.Of(identity.Workload{Kind: kind, Object: said}, live); got != nil {
		t.Errorf("one that says that it calls its cluster is given %+v", got)
	}
	anew := unsaid.DeepCopy()
	anew.UID = "another"
	if got := u.Access.Of(identity.Workload{Kind: kind, Object: anew}, live); got != nil {
		t.Errorf("another one of that name is given %+v", got)
	}
}

// A pod cannot be changed: it is as it was made, whatever comes or goes.
func TestAPodCallsWhatItWasMadeToCall(t *testing.T) {
	above := &corev1.Pod{ObjectMeta: objectMeta("web"), Spec: corev1.PodSpec{ServiceAccountName: "operator", Containers: []corev1.Container{{Name: "web"}}}}
	u := withRights(t, []any{binding("shop", toAccount("shop", "operator"))}, above)
	kind, _ := projection.KindOf(above)
	given := u.Access.Of(identity.Workload{Kind: kind, Object: above}, nil)
	if given == nil {
		t.Fatal("it is not given the API")
	}
	for name, api := range map[string]*projection.API{"with it": given, "without it": nil} {
		live, err := kind.Project(above, projection.Part{API: api}, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
		if err != nil {
			t.Fatal(err)
		}
		if got := u.Access.Of(identity.Workload{Kind: kind, Object: above}, live); (got != nil) != (api != nil) {
			t.Errorf("one that was made %s is given %+v", name, got)
		}
	}
}

// What cannot be changed once it is made waits a moment for rights that come with it.
func TestAJobMayBeGrantedRightsThatAreOnTheirWay(t *testing.T) {
	job := func(account string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: objectMeta("hook")}
		j.Spec.Template.Spec.ServiceAccountName = account
		return j
	}
	said := job("operator")
	said.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationAPI: v1alpha1.APICluster}
	tokenless := job("operator")
	tokenless.Spec.Template.Spec.AutomountServiceAccountToken = ptr.To(false)
	for name, test := range map[string]struct {
		of     projection.Object
		rights bool
		want   bool
	}{
		"a Job with an account of its own":           {of: job("operator"), want: true},
		"one whose account has rights":               {of: job("operator"), rights: true},
		"one with the account that all have":         {of: job("")},
		"one that says what it calls":                {of: said},
		"one without a token":                        {of: tokenless},
		"a Deployment, which is rolled when need be": {of: deployment("web", "", runningAs("operator"))},
	} {
		t.Run(name, func(t *testing.T) {
			var bindings []any
			if test.rights {
				bindings = append(bindings, binding("shop", toAccount("shop", "operator")))
			}
			kind, _ := projection.KindOf(test.of)
			if got := withRights(t, bindings, test.of).Access.MayBeGranted(identity.Workload{Kind: kind, Object: test.of}); got != test.want {
				t.Errorf("it may be granted: %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhoGetsRightsHasItsWorkloadsLookedAt(t *testing.T) {
	u := withRights(t, nil,
		deployment("web", `{"east":{"replicas":1}}`, runningAs("operator")), deployment("elsewhere", `{"west":{"replicas":1}}`, runningAs("operator")),
		deployment("other", `{"east":{"replicas":1}}`))
	s := attach(t, u, "east")
	for name, test := range map[string]struct {
		to   []projection.Grantee
		want []string
	}{
		"nobody":               {},
		"one":                  {[]projection.Grantee{{Namespace: "shop", Name: "operator"}}, []string{"deployments shop/web"}},
		"all of its namespace": {[]projection.Grantee{{Namespace: "shop"}}, []string{"deployments shop/other", "deployments shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			u.router.RightsChanged(test.to)
			if diff := cmp.Diff(test.want, s.enqueued()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPodThatIsShownCallsWhatItsControllerSays(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}
	shown := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: objectMeta("db-0"), Spec: corev1.PodSpec{ServiceAccountName: "operator"}}
		pod.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east", v1alpha1.AnnotationAPI: v1alpha1.APILogical}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		change(pod)
		return pod
	}
	for name, test := range map[string]struct {
		template string
		rights   bool
		pod      func(*corev1.Pod)
		want     bool
	}{
		"its account has rights":                           {rights: true, pod: func(*corev1.Pod) {}, want: true},
		"its account has none, whatever it says":           {pod: func(*corev1.Pod) {}},
		"its controller says so":                           {template: v1alpha1.APILogical, pod: func(*corev1.Pod) {}, want: true},
		"its controller says otherwise":                    {template: v1alpha1.APICluster, rights: true, pod: func(*corev1.Pod) {}},
		"it is its user's own, and says so":                {pod: func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.AnnotationCluster) }, want: true},
		"its controller is another one of that name":       {template: v1alpha1.APILogical, pod: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }},
		"it has no controller, and an account with rights": {rights: true, pod: func(p *corev1.Pod) { p.OwnerReferences = nil }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			of := set.DeepCopy()
			if test.template != "" {
				of.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationAPI: test.template}
			}
			var bindings []any
			if test.rights {
				bindings = append(bindings, binding("shop", toAccount("", "operator")))
			}
			if got := withRights(t, bindings, of).Access.CallsAPI(shown(test.pod)); got != test.want {
				t.Errorf("it calls the logical cluster: %t, want %t", got, test.want)
			}
		})
	}
}
