package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// result is what is told of a spec that was run. hack/conformance reads it.
type result struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	// Message says why the spec did not pass, Location where in Kubernetes' sources that was seen.
	Message  string `json:"message,omitempty"`
	Location string `json:"location,omitempty"`
	// Output is everything that a spec wrote that did not pass.
	Output string `json:"output,omitempty"`
}

// reportTo posts the result of each spec as soon as it is known: the reports of Ginkgo are written at the end of a run, and not at all
// when it is cut short.
func reportTo(url string) {
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		if report.NumAttempts == 0 { // filtered out
			return
		}
		if err := post(url, resultOf(report)); err != nil {
			ginkgo.Fail(fmt.Sprintf("report the result to %s: %v", url, err))
		}
	})
}

func resultOf(report ginkgo.SpecReport) result {
	r := result{Name: report.FullText(), State: report.State.String(), Seconds: report.RunTime.Seconds()}
	if report.State.Is(types.SpecStatePassed) {
		return r
	}
	r.Message, r.Location = report.Failure.Message, report.Failure.Location.String()
	r.Output = report.CapturedGinkgoWriterOutput
	return r
}

func post(url string, r result) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the answer is %s", response.Status)
	}
	return nil
}
