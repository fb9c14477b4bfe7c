package redirects

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestRedirectsAreErrors(t *testing.T) {
	visited := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited++ }))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(code)
	}))
	defer server.Close()
	client := &http.Client{Transport: Refuse(server.Client().Transport)}
	for name, test := range map[string]struct {
		method string
		code   int
		to     string
		want   string // of the error
	}{
		"of a GET":                     {http.MethodGet, 302, elsewhere.URL, elsewhere.URL},
		"of a DELETE, which repeats":   {http.MethodDelete, 307, elsewhere.URL, elsewhere.URL},
		"of a POST, for ever":          {http.MethodPost, 308, elsewhere.URL, elsewhere.URL},
		"to a path of the same server": {http.MethodGet, 301, "/200", `"/200"`},
		"to what is no URL":            {http.MethodGet, 303, "::%%", `"::%%"`},
		"to nowhere":                   {http.MethodGet, 302, "", `""`},
		"to much":                      {http.MethodGet, 302, "/" + strings.Repeat("a", 1000), `aaa...", which is not followed`},
		"not what is none":             {http.MethodGet, 200, elsewhere.URL, ""},
		"not what has not changed":     {http.MethodGet, 304, elsewhere.URL, ""},
		"not a refusal":                {http.MethodGet, 404, elsewhere.URL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+"/"+strconv.Itoa(test.code), nil)
			if err != nil {
				t.Fatal(err)
			}
			query := request.URL.Query()
			query.Set("to", test.to)
			request.URL.RawQuery = query.Encode()
			response, err := client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			var redirect *Error
			switch {
			case test.want == "" && (err != nil || response.StatusCode != test.code):
				t.Errorf("got %v", err)
			case test.want != "" && (!errors.As(err, &redirect) || redirect.Code != test.code || !strings.Contains(redirect.Error(), test.want) || len(redirect.Error()) > 300):
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if visited != 0 {
		t.Errorf("%d redirects were followed", visited)
	}
}

func TestTheErrorShowsNothingThatATerminalObeys(t *testing.T) {
	if got := (&Error{Code: 302, Location: "https://x/\x1b[2J\u009b1m\n"}).Error(); strings.ContainsAny(got, "\x1b\n\u009b") {
		t.Errorf("got %q", got)
	}
}
