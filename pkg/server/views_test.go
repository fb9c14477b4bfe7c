package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
)

// viewer makes a ServiceAccount "deployer" in namespace shop that may edit there and use the views of clusters.
func viewer(t *testing.T, client kubernetes.Interface, clusters ...string) {
	t.Helper()
	ctx := t.Context()
	for _, create := range []func() error{
		func() error {
			_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.CoreV1().ServiceAccounts("shop").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().RoleBindings("shop").Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "deployer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "deployer"}},
			}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "views"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"clusters/view"}, Verbs: []string{"use"}, ResourceNames: clusters,
			}}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "views"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "views"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "deployer"}},
			}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
}

// throughView returns the API as a cluster is to see it, for the deployer, and how to reach it.
func throughView(t *testing.T, admin kubernetes.Interface, config *rest.Config, cluster string) (kubernetes.Interface, *rest.Config) {
	t.Helper()
	target, err := targets.Make(t.Context(), admin, targets.Access{
		Server: config.Host, Authority: config.CAData, Cluster: cluster, Namespace: "shop", ServiceAccount: "deployer", Duration: time.Hour,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	through, err := clientcmd.RESTConfigFromKubeConfig(target.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, through), through
}

// clientOf returns a client that does not wait for itself.
func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// soon waits until something is so.
func soon(t *testing.T, claim string, is func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = is()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", claim, err, last)
	}
}

// known has a logical cluster know clusters that nobody reaches.
func known(t *testing.T, config *rest.Config, names ...string) {
	t.Helper()
	own, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cluster.Spec.Connection.SecretRef = &v1alpha1.SecretReference{Namespace: v1alpha1.SystemNamespace, Name: "cluster-" + name}
		if _, err := own.ManifoldV1alpha1().Clusters().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClustersSeeTheLogicalClusterEachForItself(t *testing.T) {
	ctx := t.Context()
	logical, config, _ := serve(t, "seen")
	known(t, config, "east", "west")
	viewer(t, logical, "east", "west")
	views := map[string]kubernetes.Interface{}
	for _, name := range []string{"east", "west"} {
		views[name], _ = throughView(t, logical, config, name)
		soon(t, "the rights count", func() error {
			_, err := views[name].CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{})
			return err
		})
	}
	west, err := views["west"].CoreV1().ConfigMaps("shop").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil {
		t.Fatal(err)
	}
	defer west.Stop()

	t.Run("what is made through a view is that cluster's alone", func(t *testing.T) {
		for name, view := range views {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name}, Data: map[string]string{"cluster": name}}
			if _, err := view.CoreV1().ConfigMaps("shop").Create(ctx, made, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			applied := applycorev1.ConfigMap("applied-"+name, "shop").WithData(map[string]string{"cluster": name})
			if _, err := view.CoreV1().ConfigMaps("shop").Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
				t.Fatal(err)
			}
		}
		for name, other := range map[string]string{"east": "west", "west": "east"} {
			if _, err := views[name].CoreV1().ConfigMaps("shop").Get(ctx, "of-"+other, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the view of %s has what was made for %s: %v", name, other, err)
			}
			above, err := logical.CoreV1().ConfigMaps("shop").Get(ctx, "of-"+name, metav1.GetOptions{})
			if err != nil || above.Annotations[v1alpha1.AnnotationClusters] != name || above.Annotations[v1alpha1.AnnotationView] != name {
				t.Errorf("of-%s is stored with %v, %v", name, above.Annotations, err)
			}
		}
	})

	t.Run("it is changed by every way", func(t *testing.T) {
		east := views["east"].CoreV1().ConfigMaps("shop")
		holds := func(object, want string) {
			t.Helper()
			found, err := logical.CoreV1().ConfigMaps("shop").Get(ctx, object, metav1.GetOptions{})
			if err != nil || found.Data["cluster"] != want || found.Annotations[v1alpha1.AnnotationView] != "east" {
				t.Errorf("%s holds %v of view %q, %v, want %s", object, found.Data, found.Annotations[v1alpha1.AnnotationView], err, want)
			}
		}
		if _, err := east.Patch(ctx, "of-east", types.StrategicMergePatchType, []byte(`{"data":{"cluster":"patched"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		holds("of-east", "patched")
		seen, err := east.Get(ctx, "of-east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		old := seen.ResourceVersion
		seen.Data["cluster"] = "updated"
		if _, err := east.Update(ctx, seen, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		holds("of-east", "updated")
		if seen.ResourceVersion = old; seen.ResourceVersion == "" {
			t.Fatal("it has no version")
		}
		if _, err := east.Update(ctx, seen, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("what was seen before the last change is written: %v", err)
		}
		applied := applycorev1.ConfigMap("applied-east", "shop").WithData(map[string]string{"cluster": "applied"})
		if _, err := east.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "me"}); err != nil {
			t.Fatal(err)
		}
		holds("applied-east", "applied")
		if _, err := east.Apply(ctx, applied.WithData(map[string]string{"cluster": "theirs"}), metav1.ApplyOptions{FieldManager: "another"}); !apierrors.IsConflict(err) {
			t.Errorf("a field of another manager is applied: %v", err)
		}
		if err := east.Delete(ctx, "of-east", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := logical.CoreV1().ConfigMaps("shop").Get(ctx, "of-east", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is there: %v", err)
		}
	})

	t.Run("what is not one cluster's alone is seen, and not written", func(t *testing.T) {
		common := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "common"}}
		if _, err := logical.CoreV1().ConfigMaps("shop").Create(ctx, common, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		east := views["east"]
		if _, err := east.CoreV1().ConfigMaps("shop").Get(ctx, "common", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if err := east.CoreV1().ConfigMaps("shop").Delete(ctx, "common", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("what all share is deleted: %v", err)
		}
		if _, err := east.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "common"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a name that all share: %v", err)
		}
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		web.Spec.Template.Labels = map[string]string{"app": "web"}
		web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		if _, err := east.AppsV1().Deployments("shop").Create(ctx, web, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if scale, err := east.AppsV1().Deployments("shop").GetScale(ctx, "web", metav1.GetOptions{}); err != nil || scale.Spec.Replicas != 1 {
			t.Errorf("its scale is %v, %v", scale, err)
		}
		if _, err := views["west"].AppsV1().Deployments("shop").GetScale(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("another view has its scale: %v", err)
		}
		above, err := logical.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || above.Annotations[v1alpha1.AnnotationClusters] != "east" {
			t.Errorf("it is pinned to %q, %v", above.Annotations[v1alpha1.AnnotationClusters], err)
		}
	})

	t.Run("a watch tells of what is there, and ends with its cluster", func(t *testing.T) {
		own, err := versioned.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		seen := func(event watch.Event) {
			names[string(event.Type)+" "+event.Object.(*corev1.ConfigMap).Name] = true
		}
		for !names["ADDED common"] {
			select {
			case event, open := <-west.ResultChan():
				if !open {
					t.Fatal("it has ended")
				}
				seen(event)
			case <-time.After(time.Minute):
				t.Fatalf("it tells of %v", names)
			}
		}
		if err := own.ManifoldV1alpha1().Clusters().Delete(ctx, "west", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		soon(t, "nothing is sent there any more", func() error {
			_, err := views["west"].CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is made: %w", err)
			}
			return nil
		})
		for _, name := range []string{"of-west", "applied-west"} {
			if err := logical.CoreV1().ConfigMaps("shop").Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		for open := true; open; {
			var event watch.Event
			select {
			case event, open = <-west.ResultChan():
				if open {
					seen(event)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("it goes on")
			}
		}
		if names["ADDED of-east"] || names["ADDED applied-east"] || names["DELETED applied-east"] || !names["ADDED of-west"] {
			t.Errorf("it tells of %v", names)
		}
		soon(t, "the cluster is gone", func() error {
			if _, err := views["west"].CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("its view answers: %w", err)
			}
			return nil
		})
	})
}

func TestATokenOfAViewOpensNoOtherDoor(t *testing.T) {
	ctx := t.Context()
	logical, config, _ := serve(t, "guarded")
	known(t, config, "east", "west")
	viewer(t, logical, "east")
	east, through := throughView(t, logical, config, "east")
	soon(t, "the rights count", func() error {
		_, err := east.CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{})
		return err
	})
	at := func(path string) kubernetes.Interface {
		elsewhere := rest.CopyConfig(through)
		elsewhere.Host = config.Host + path
		return clientOf(t, elsewhere)
	}
	for _, path := range []string{"", "/clusters/west", "/clusters/nowhere"} {
		if _, err := at(path).CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("it is good at %q: %v", path, err)
		}
	}
	if _, err := east.CoreV1().ServiceAccounts("shop").CreateToken(ctx, "deployer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it makes others: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: map[string]string{corev1.ServiceAccountNameKey: "deployer"}}, Type: corev1.SecretTypeServiceAccountToken}
	if _, err := east.CoreV1().Secrets("shop").Create(ctx, secret, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it has others be made: %v", err)
	}
	for name, call := range map[string]func() error{
		"other namespaces": func() error {
			_, err := east.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{})
			return err
		},
		"all namespaces": func() error {
			_, err := east.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
			return err
		},
		"namespaces": func() error {
			_, err := east.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := call(); !apierrors.IsForbidden(err) {
			t.Errorf("it is good for %s: %v", name, err)
		}
	}
	// Whoever may do everything may impersonate somebody, and gets as far as that one.
	as := rest.CopyConfig(config)
	as.Host += "/clusters/west"
	as.Impersonate.UserName = "system:serviceaccount:shop:deployer"
	if _, err := clientOf(t, as).CoreV1().ConfigMaps("shop").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the view of another cluster is open to who may not use it: %v", err)
	}
}
