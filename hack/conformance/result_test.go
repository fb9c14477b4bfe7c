package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestCollectorKeepsResultsAndTheOutputOfFailures(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	c := &collector{dir: dir, out: &out}
	for _, body := range []string{
		`{"name":"[sig-b] stops [Conformance]","state":"failed","seconds":2,"message":"no","location":"x.go:1","output":"STEP: stop"}`,
		`{"name":"[sig-a] runs [Conformance]","state":"passed","seconds":1}`,
	} {
		if got := tell(c, body); got != http.StatusNoContent {
			t.Errorf("result %s: status %d, want %d", body, got, http.StatusNoContent)
		}
	}
	if got := tell(c, "no JSON"); got != http.StatusBadRequest {
		t.Errorf("what is no result: status %d, want %d", got, http.StatusBadRequest)
	}
	log := filepath.Join(dir, "sig-b-stops.log")
	want := []result{
		{Name: "[sig-a] runs [Conformance]", State: statePassed, Seconds: 1},
		{Name: "[sig-b] stops [Conformance]", State: "failed", Seconds: 2, Message: "no", Location: "x.go:1", Log: log},
	}
	if got := c.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("results are %+v, want %+v", got, want)
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(raw), "no\nx.go:1\n\nSTEP: stop"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
	wantOut := "   1 run, 0 passed: failed after 2s: [sig-b] stops [Conformance]\n   2 run, 1 passed: passed after 1s: [sig-a] runs [Conformance]\n"
	if out.String() != wantOut {
		t.Errorf("the progress is\n%swant\n%s", out.String(), wantOut)
	}
}

func tell(c *collector, body string) int {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w.Code
}
