package watching

import (
	"strings"
	"testing"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

func TestOnATerminalTheReleaseIsDrawnInPlace(t *testing.T) {
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	client := fake.NewSimpleClientset(in(v1alpha1.ReleaseRunning, "on its way"))
	followed := make(chan error, 1)
	go func() {
		defer screen.Close()
		followed <- New(client, screen).Follow(t.Context(), "shop", "web-x2f")
	}()
	var seen strings.Builder
	part := make([]byte, 4096)
	for ended := false; ; {
		n, err := terminal.Read(part)
		seen.Write(part[:n])
		if err != nil { // nobody writes to the terminal any more
			break
		}
		if !ended && strings.Contains(seen.String(), "Running: on its way") {
			ended = true
			done := in(v1alpha1.ReleaseSucceeded, "done")
			if _, err := client.DeliveryV1alpha1().Releases("shop").Update(t.Context(), done, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	_, after, found := strings.Cut(seen.String(), "\x1b[3A")
	if !found || !strings.Contains(after, "Succeeded: done") {
		t.Errorf("the end is not drawn in the place of the beginning: %q", seen.String())
	}
}
