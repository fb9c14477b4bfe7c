package pods

import (
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func annotated(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
}

func TestAnnotationsSayHowAPodBehaves(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		query       string
		want        behaviour
		wantErr     string
	}{
		"without any it is well": {want: behaviour{status: 200, drain: -1}},
		"all at once": {
			annotations: map[string]string{
				AnnotationDelay: "2s", AnnotationStatus: "503", AnnotationStart: "1s", AnnotationUnready: "true", AnnotationDrain: "0s",
			},
			want: behaviour{delay: 2 * time.Second, status: 503, start: time.Second, unready: true},
		},
		"a request asks for itself": {
			annotations: map[string]string{AnnotationDelay: "2s"}, query: "delay=1ms&status=404",
			want: behaviour{delay: time.Millisecond, status: 404, drain: -1},
		},
		"what is no duration is named": {annotations: map[string]string{AnnotationDrain: "soon"}, wantErr: AnnotationDrain},
		"so is what is no status":      {annotations: map[string]string{AnnotationStatus: "99"}, wantErr: AnnotationStatus},
		"so is a bad query":            {query: "status=up", wantErr: "parameter status"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := behaviourOf(annotated(tt.annotations))
			if err == nil {
				got, err = got.with(query)
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want one that names %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("behaviour %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}
