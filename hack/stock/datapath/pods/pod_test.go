package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// web is a pod as kwok leaves it. Its address differs between processes that test at the same time.
func web(last byte) *corev1.Pod {
	pid := os.Getpid()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: types.UID(fmt.Sprint("web-", last)), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "east-0", Containers: []corev1.Container{
			{Name: "web", Image: "registry:5000/web:v7", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 8443}}},
		}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.254.%d.%d", pid%250, last),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionFalse},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web"}},
		},
	}
}

// ask asks a pod for a path on one of its ports.
func ask(ctx context.Context, pod *corev1.Pod, port uint16, path string) (answer Answer, response *http.Response, err error) {
	at, err := Listener(netip.MustParseAddr(pod.Status.PodIP), port)
	if err != nil {
		return answer, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+path, nil)
	if err != nil {
		return answer, nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if response, err = client.Do(request); err != nil {
		return answer, nil, err
	}
	defer response.Body.Close()
	return answer, response, json.NewDecoder(response.Body).Decode(&answer)
}

func TestAPodAnswersWithWhoItIs(t *testing.T) {
	of := web(1)
	p, err := startPod("east", of, behaviour{status: 200}, &gate{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	for _, port := range []uint16{80, 8443} {
		got, response, err := ask(t.Context(), of, port, "/a?status=418")
		want := Answer{Cluster: "east", Namespace: "shop", Pod: "web-1", Node: "east-0", App: "web", Version: "v7", Path: "/a"}
		if err != nil || got != want || response.StatusCode != 418 {
			t.Errorf("port %d answers %+v, %v, want %+v with status 418", port, got, err, want)
		}
	}
	p.stop()
	if _, _, err := ask(t.Context(), of, 80, "/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a pod that has stopped: %v, want a refused connection", err)
	}
}

func TestTheVersionIsThatOfTheEnvironmentOrOfTheImage(t *testing.T) {
	for image, want := range map[string]string{"web:v1": "v1", "registry:5000/web": "", "registry:5000/web:v2": "v2"} {
		pod := web(1)
		pod.Spec.Containers[0].Image = image
		if got := identity("east", pod).Version; got != want {
			t.Errorf("image %s has version %q, want %q", image, got, want)
		}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "VERSION", Value: "blue"}}
		if got := identity("east", pod).Version; got != "blue" {
			t.Errorf("image %s with a variable has version %q, want that", image, got)
		}
	}
}

func TestAFrozenPodAnswersOnceItThaws(t *testing.T) {
	of, held := web(2), &gate{}
	p, err := startPod("east", of, behaviour{status: 200}, held)
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	held.close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := ask(ctx, of, 80, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a frozen pod: %v, want no answer", err)
	}
	time.AfterFunc(50*time.Millisecond, held.open)
	if _, _, err := ask(t.Context(), of, 80, "/"); err != nil {
		t.Errorf("a pod that thaws: %v", err)
	}
}

// served is a Server with an API that has the pod.
func served(t *testing.T, pod *corev1.Pod) (*Server, *fake.Clientset, cache.ObjectName) {
	t.Helper()
	client := fake.NewClientset(pod)
	s := New("east", client)
	name := cache.MetaObjectToName(pod)
	t.Cleanup(func() {
		if p := s.of(name); p != nil {
			p.kill()
		}
	})
	return s, client, name
}

func ready(t *testing.T, client *fake.Clientset) bool {
	t.Helper()
	pod, err := client.CoreV1().Pods("shop").Get(t.Context(), "web-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Status.Conditions[0].Status == corev1.ConditionTrue && pod.Status.Conditions[1].Status == corev1.ConditionTrue &&
		pod.Status.ContainerStatuses[0].Ready
}

func TestAPodIsReadyWhenItListens(t *testing.T) {
	pod := web(3)
	s, client, name := served(t, pod)
	if _, err := s.sync(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t.Context(), pod, 80, "/"); err != nil || !ready(t, client) {
		t.Errorf("it answers with %v and is ready %t", err, ready(t, client))
	}
	pod = pod.DeepCopy()
	pod.Status.Conditions[0].Status, pod.Status.Conditions[1].Status = corev1.ConditionTrue, corev1.ConditionTrue
	pod.Annotations = map[string]string{AnnotationUnready: "true"}
	if _, err := s.sync(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t.Context(), pod, 80, "/"); err != nil || ready(t, client) {
		t.Errorf("an unready one answers with %v and is ready %t", err, ready(t, client))
	}
}

func TestAPodThatStartsSlowlyIsReadyLater(t *testing.T) {
	pod := web(4)
	pod.Annotations = map[string]string{AnnotationStart: "1h"}
	s, client, name := served(t, pod)
	again, err := s.sync(t.Context(), name, pod)
	if err != nil || ready(t, client) || again < 59*time.Minute || again > time.Hour {
		t.Errorf("it is ready %t and looked at again after %s, %v", ready(t, client), again, err)
	}
}

// deleting returns the pod as the API server has it from its deletion on, with so much of its grace period left.
func deleting(pod *corev1.Pod, left time.Duration) *corev1.Pod {
	out := pod.DeepCopy()
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(time.Now().Add(left))), ptr.To(int64(60))
	return out
}

func deletions(client *fake.Clientset) (grace []int64) {
	for _, action := range client.Actions() {
		if d, ok := action.(clienttesting.DeleteAction); ok {
			grace = append(grace, *d.GetDeleteOptions().GracePeriodSeconds)
		}
	}
	return grace
}

func TestAPodServesThroughItsGracePeriod(t *testing.T) {
	pod := web(5)
	s, client, name := served(t, pod)
	if _, err := s.sync(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	again, err := s.sync(t.Context(), name, deleting(pod, 40*time.Second))
	if err != nil || again <= 30*time.Second {
		t.Errorf("it is looked at again after %s, %v", again, err)
	}
	if _, response, err := ask(t.Context(), pod, 80, "/"); err != nil || !response.Close {
		t.Errorf("a pod that drains: %v, want an answer that asks to go elsewhere", err)
	}
	if len(deletions(client)) != 0 {
		t.Error("it is removed from the API before its end")
	}
	if _, err := s.sync(t.Context(), name, deleting(pod, -time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t.Context(), pod, 80, "/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a pod that has ended: %v, want a refused connection", err)
	}
	if got := deletions(client); len(got) != 1 || got[0] != 0 {
		t.Errorf("deletions with grace periods %v, want one of 0", got)
	}
}

func TestAPodMayEndEarly(t *testing.T) {
	pod := web(6)
	pod.Annotations = map[string]string{AnnotationDrain: "10s"}
	s, client, name := served(t, pod)
	if _, err := s.sync(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	if _, err := s.sync(t.Context(), name, deleting(pod, 49*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := deletions(client); len(got) != 1 {
		t.Errorf("%d deletions 11 s after it was told to end, want one", len(got))
	}
}

func TestAPodThatIsGoneOrReplacedDoesNotListen(t *testing.T) {
	pod := web(7)
	s, _, name := served(t, pod)
	if _, err := s.sync(t.Context(), name, pod); err != nil {
		t.Fatal(err)
	}
	another := pod.DeepCopy()
	another.UID, another.Status.Phase = "another", corev1.PodPending
	if _, err := s.sync(t.Context(), name, another); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t.Context(), pod, 80, "/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a pod that was replaced: %v, want a refused connection", err)
	}
}
