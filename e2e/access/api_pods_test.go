package access

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// operatorAccount is a ServiceAccount, and operatorRights are what an operator that makes Deployments has of rights.
const (
	operatorAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
`
	operatorRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{kind: ServiceAccount, name: operator}]
`
)

// operatedBy is a Deployment whose pods run as the operator.
func operatedBy(name string, change ...func(*appsv1.Deployment)) string {
	return manifests.Edited(manifests.Deployment(name, 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.ServiceAccountName = "operator"
		for _, c := range change {
			c(d)
		}
	})
}

// podBelow waits for the one pod of a Deployment and returns it as its cluster has it.
func podBelow(s *framework.Scenario, deployment string) (*framework.Side, *corev1.Pod) {
	s.Helper()
	shown := framework.AwaitList(s.Logical, "app="+deployment, "one pod is ready", expect.ReadyPods(1))[0]
	side := s.Side(shown.Spec.NodeName)
	return side, framework.Await(side, shown.Name, "is there", framework.Exists[*corev1.Pod])
}

// inPod is what a process in the first container of a pod has.
type inPod struct {
	env  map[string]string
	root string
}

// enter makes the environment and the files of a pod as a kubelet does.
func enter(s *framework.Scenario, in *framework.Side, pod *corev1.Pod) inPod {
	s.Helper()
	p := inPod{env: map[string]string{}, root: s.TempDir()}
	container := pod.Spec.Containers[0]
	for _, variable := range container.Env {
		p.env[variable.Name] = variable.Value
	}
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name == mount.Name && volume.Projected != nil {
				p.project(s, in, pod, mount.MountPath, volume.Projected.Sources)
			}
		}
	}
	return p
}

func (p inPod) project(s *framework.Scenario, in *framework.Side, pod *corev1.Pod, at string, sources []corev1.VolumeProjection) {
	s.Helper()
	for _, source := range sources {
		if token := source.ServiceAccountToken; token != nil {
			p.write(s, filepath.Join(at, token.Path), tokenOf(s, in, pod, token))
		}
		if source.DownwardAPI != nil {
			for _, item := range source.DownwardAPI.Items {
				p.write(s, filepath.Join(at, item.Path), fieldOf(s, pod, item.FieldRef.FieldPath))
			}
		}
	}
}

func (p inPod) write(s *framework.Scenario, file, content string) {
	s.Helper()
	file = filepath.Join(p.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

// tokenOf asks a cluster for the token that a volume of a pod says.
func tokenOf(s *framework.Scenario, in *framework.Side, pod *corev1.Pod, as *corev1.ServiceAccountTokenProjection) string {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{as.Audience}, ExpirationSeconds: as.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	made, err := in.Kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(s.Context(), pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return made.Status.Token
}

func fieldOf(s *framework.Scenario, pod *corev1.Pod, path string) string {
	s.Helper()
	if path == "metadata.namespace" {
		return pod.Namespace
	}
	key, ok := strings.CutPrefix(path, "metadata.annotations['")
	key, closed := strings.CutSuffix(key, "']")
	value, there := pod.Annotations[key]
	if !ok || !closed || !there {
		s.Fatalf("the pod has nothing at %q", path)
	}
	return value
}

// config is what rest.InClusterConfig makes of the environment and the files.
func (p inPod) config() *rest.Config {
	const at = "/var/run/secrets/kubernetes.io/serviceaccount"
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(p.env["KUBERNETES_SERVICE_HOST"], p.env["KUBERNETES_SERVICE_PORT"]),
		BearerTokenFile: filepath.Join(p.root, at, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(p.root, at, "ca.crt")},
	}
}

func (p inPod) client(s *framework.Scenario) kubernetes.Interface {
	s.Helper()
	client, err := kubernetes.NewForConfig(p.config())
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func awaitUnauthorized(s *framework.Scenario, client kubernetes.Interface) {
	s.Helper()
	s.Logical.Poll("the token is refused", func() error {
		_, err := client.CoreV1().Pods(s.Namespace).List(s.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

// callsLogical reports whether a pod below is one that calls the logical cluster.
func callsLogical(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == projection.APIVolume {
			return pod.Annotations[v1alpha1.AnnotationAPIAuthority] != ""
		}
	}
	return false
}

func TestAnOperatorInAClusterCallsTheLogicalCluster(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(operatorAccount, operatorRights, operatedBy("operator"))
	side, pod := podBelow(s, "operator")
	shown := framework.Await(s.Logical, pod.Name, "is shown", framework.Exists[*corev1.Pod])
	if text := fmt.Sprint(shown.Spec, shown.Annotations); strings.Contains(text, projection.APIVolume) || strings.Contains(text, "KUBERNETES_SERVICE_HOST") {
		t.Errorf("the mirror shows how the projection has the pod call the logical cluster: %s", text)
	}
	process := enter(s, side, pod)
	client := process.client(s)

	// Who it is.
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	account, err := s.Logical.Kube.CoreV1().ServiceAccounts(s.Namespace).Get(t.Context(), "operator", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if user := review.Status.UserInfo; user.Username != "system:serviceaccount:"+s.Namespace+":operator" || user.UID != string(account.UID) ||
		user.Extra["authentication.kubernetes.io/pod-uid"][0] != string(pod.UID) {
		t.Errorf("it is %+v", user)
	}

	// Leader election, creation of what clusters then run, and a watch of that.
	operate(s, client, pod.Name)
	expect.RolledOut(s, "operand", 2)

	// Its rights end where they end.
	if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing pods of another namespace: %v", err)
	}
	if _, err := client.CoreV1().Secrets(s.Namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: %v", err)
	}
	// The token is no use at the API server of the cluster.
	there := rest.AnonymousClientConfig(side.Config)
	there.BearerTokenFile = process.config().BearerTokenFile
	if own, err := kubernetes.NewForConfig(there); err != nil {
		t.Fatal(err)
	} else if _, err := own.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the API server of the cluster answers it with %v", err)
	}

	// It dies with its pod, above or below.
	s.Logical.Kubectl("delete", "pod", pod.Name, "--wait=false")
	framework.AwaitGone[*corev1.Pod](s.Logical, pod.Name)
	awaitUnauthorized(s, client)
}

// operate does what an operator does: it becomes the leader, creates a Deployment and watches its pods until both are ready.
func operate(s *framework.Scenario, client kubernetes.Interface, self string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), framework.Deadline)
	defer cancel()
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, s.Namespace, "operator", client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: self})
	if err != nil {
		s.Fatal(err)
	}
	result := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { result <- lead(ctx, s.Namespace, client); cancel() },
			OnStoppedLeading: func() {},
		},
	})
	select {
	case err := <-result:
		if err != nil {
			s.Fatalf("operate: %v", err)
		}
	default:
		s.Fatal("it has not become the leader")
	}
}

func lead(ctx context.Context, namespace string, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=operand"})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer pods.Stop()
	labels := map[string]string{"app": "operand"}
	replicas := int32(2)
	_, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "operand"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/operand:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a Deployment: %w", err)
	}
	seen := map[string]bool{}
	for len(seen) < int(replicas) {
		select {
		case event, open := <-pods.ResultChan():
			if !open {
				return fmt.Errorf("the watch of pods has ended")
			}
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && expect.Ready(pod) {
				seen[pod.Name] = true
			}
		case <-ctx.Done():
			return fmt.Errorf("it has seen %d ready pods: %w", len(seen), ctx.Err())
		}
	}
	return nil
}

// oneOffs are what cannot be changed once it is made.
const oneOffs = `
apiVersion: batch/v1
kind: Job
metadata: {name: hook}
spec:
  template:
    metadata: {labels: {app: hook}}
    spec:
      serviceAccountName: operator
      restartPolicy: Never
      containers: [{name: hook, image: "hook:1"}]
---
apiVersion: v1
kind: Pod
metadata: {name: tool, labels: {app: tool}}
spec:
  serviceAccountName: operator
  automountServiceAccountToken: false
  containers:
  - name: tool
    image: "tool:1"
    volumeMounts: [{name: own, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
  volumes:
  - name: own
    projected:
      sources:
      - serviceAccountToken: {path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
`

// What has its rights with it calls the logical cluster from the beginning, and a token that is mounted by hand is for it as well.
func TestJobsAndPodsCallTheLogicalClusterFromTheBeginning(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(operatorAccount, operatorRights, oneOffs)
	framework.AwaitList(s.Side(podCluster(s, "app=hook")), "app=hook", "calls the logical cluster", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && callsLogical(pods[0])
	})
	tool := framework.Await(s.Logical, "tool", "is ready", expect.Ready)
	side := s.Side(tool.Spec.NodeName)
	below := framework.Await(side, "tool", "is there", framework.Exists[*corev1.Pod])
	client := enter(s, side, below).client(s)
	if _, err := client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if sources := tool.Spec.Volumes[0].Projected.Sources; sources[0].ServiceAccountToken.Audience != "" || sources[1].ConfigMap == nil {
		t.Errorf("the pod above is another than its user's: %+v", sources)
	}
	s.Logical.Kubectl("delete", "pod", "tool", "--wait=false")
	awaitUnauthorized(s, client)
}

// podCluster waits for a pod and returns where it is.
func podCluster(s *framework.Scenario, selector string) string {
	s.Helper()
	return framework.AwaitList(s.Logical, selector, "a pod is in a cluster", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].Spec.NodeName != ""
	})[0].Spec.NodeName
}

func TestPodsCallTheLogicalClusterOnceTheyHaveRights(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(operatorAccount, operatedBy("late"), operatedBy("own", func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationAPI: v1alpha1.APICluster}
	}))
	side, late := podBelow(s, "late")
	ownSide, own := podBelow(s, "own")
	if callsLogical(late) || callsLogical(own) {
		t.Fatal("pods without rights call the logical cluster")
	}
	// A token that is made for it all the same, by somebody who may, is none.
	forged := func(in *framework.Side, pod *corev1.Pod) kubernetes.Interface {
		audience := projection.Target{LogicalCluster: framework.IdentityOf(t, s.Environment), Cluster: in.Name}.Audience()
		config := rest.AnonymousClientConfig(s.Logical.Config)
		config.BearerToken = tokenOf(s, in, pod, &corev1.ServiceAccountTokenProjection{Audience: audience})
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	awaitUnauthorized(s, forged(side, late))

	s.Logical.Apply(operatorRights)
	rolled := framework.AwaitList(side, "app=late", "is replaced by one that calls the logical cluster", func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && pods[0].UID != late.UID && callsLogical(pods[0]) && expect.Ready(pods[0])
	})[0]
	expect.RolledOut(s, "late", 1)
	framework.Await(s.Logical, rolled.Name, "is shown", expect.Ready)
	if _, err := enter(s, side, rolled).client(s).CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	// Who says otherwise is left alone.
	awaitUnauthorized(s, forged(ownSide, own))
	if now := framework.Await(ownSide, own.Name, "is there", framework.Exists[*corev1.Pod]); now.UID != own.UID || callsLogical(now) {
		t.Error("a pod that says that it calls its cluster was replaced")
	}

	// Rights that go away replace no pods.
	client := enter(s, side, rolled).client(s)
	s.Logical.Kubectl("delete", "rolebinding", "operator")
	awaitUnauthorized(s, client)
	s.Logical.Apply(manifests.Pinned(operatedBy("late", func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 }), side.Name))
	framework.AwaitList(side, "app=late", "are two, of which one was there before", func(pods []*corev1.Pod) bool {
		had := 0
		for _, pod := range pods {
			if pod.UID == rolled.UID {
				had++
			}
			if !callsLogical(pod) || !expect.Ready(pod) {
				return false
			}
		}
		return len(pods) == 2 && had == 1
	})
	expect.Shares(s, "late", placement.Decision{side.Name: {Replicas: 2}})

	expect.Refused(t, s.Logical.TryInput(operatedBy("wrong", func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationAPI: "both"}
	}), "apply", "-f", "-"), "spec.template.metadata.annotations[manifold.dev/api]", "logical")
}
