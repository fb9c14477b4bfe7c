package clusters

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// hangs answers with as much as its URL asks for, and then nothing until the request is given up.
func hangs(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/silent" {
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
	}
	if r.URL.Path != "/whole" {
		<-r.Context().Done()
	}
}

func TestARequestThatHangsIsGivenUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hangs))
	t.Cleanup(server.Close)
	const short, long = 20 * time.Millisecond, time.Hour
	for name, test := range map[string]struct {
		answer, watch time.Duration
		url           string
		begun         bool // there is an answer
		hung          bool // and it ends by being given up
	}{
		"one that is not answered":                        {answer: short, watch: long, url: "/silent", hung: true},
		"a watch that is not answered":                    {answer: short, watch: long, url: "/silent?watch=true", hung: true},
		"one whose answer stops":                          {answer: short, watch: long, url: "/part", begun: true, hung: true},
		"a watch that says nothing any more":              {answer: long, watch: short, url: "/part?allowWatchBookmarks=true&watch=true", begun: true, hung: true},
		"but not one whose answer comes":                  {answer: long, watch: short, url: "/whole", begun: true},
		"and not one of which the reader takes long":      {answer: long, watch: long, url: "/whole?watch=true", begun: true},
		"what only names watches waits as long as others": {answer: short, watch: long, url: "/part?watch=false", begun: true, hung: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &patience{http.DefaultTransport, test.answer, test.watch}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if begun := err == nil; begun != test.begun {
				t.Fatalf("answered is %t, want %t: %v", begun, test.begun, err)
			}
			if err == nil {
				var body []byte
				body, err = io.ReadAll(response.Body)
				if string(body) != "begun" {
					t.Errorf("read %q", body)
				}
				if err := response.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if hung := errors.Is(err, os.ErrDeadlineExceeded); hung != test.hung {
				t.Errorf("given up is %t, want %t: %v", hung, test.hung, err)
			}
		})
	}
}
