package git

import (
	"io/fs"
	"sync"
	"testing"
)

func TestManyMayAskForTheSameCommitAtOnce(t *testing.T) {
	r := newTestRepository(t)
	r.Commit("first", map[string]string{"web.yaml": "first", "api.yaml": "first"})
	server := r.serve()
	client := newTestClient(t, Policy{Allow: anywhere}, Limits{Cache: 1})
	revision, err := client.Resolve(t.Context(), server.request(Ref{}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			checkout, err := client.Fetch(t.Context(), server.request(Ref{}), revision)
			if err != nil {
				t.Error(err)
				return
			}
			defer checkout.Close()
			err = fs.WalkDir(checkout.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					_, err = fs.ReadFile(checkout.FS(), name)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if server.Fetches() != 1 {
		t.Errorf("%d fetches, want 1", server.Fetches())
	}
}
