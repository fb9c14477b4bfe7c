package delivery

import (
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework/page"
)

func TestThePageGettingStartedIsTrue(t *testing.T) {
	r := page.NewReader(suite.Scenario(t))
	r.Git("init.defaultBranch", "main")
	r.Names = []string{"https://git.example/shop.git", newBareRepository(t).serveAll() + "/shop.git"}
	// The page ends with that too, if it is read to its end.
	t.Cleanup(func() { r.Environment.Cleanup(t, "delete", "namespace", "shop", "--ignore-not-found", "--wait=false") })
	r.Follow("delivery/getting-started.md")
}
