package delivery

import (
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework/page"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

func TestThePageGettingStartedIsTrue(t *testing.T) {
	r := page.NewReader(suite.Scenario(t))
	r.Git("init.defaultBranch", "main")
	repository := gittest.New(t, "shop.git", "--bare")
	repository.Git("config", "http.receivepack", "true") // it takes what is pushed to it
	r.Names = []string{"https://git.example/shop.git", repository.Serve()}
	// The page ends with that too, if it is read to its end.
	t.Cleanup(func() { r.Environment.Cleanup(t, "delete", "namespace", "shop", "--ignore-not-found", "--wait=false") })
	r.Follow("delivery/getting-started.md")
}
