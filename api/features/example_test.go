package features_test

import (
	"fmt"

	"orch.io/controlplane/api/features"
)

// A program adds a gate of its own to the gates of every server. A server.Builder makes the set
// from its fields Release, Features and Gates.
func ExampleSet() {
	blink := features.Gate{Name: "Blink", Alpha: "0.0", Doc: "lamps blink"}
	set, err := features.Parse("Blink=true,WatchList=false")
	if err != nil {
		panic(err)
	}
	s, err := features.New("1.34", set, blink)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Enabled("Blink"), s.Enabled(features.WatchList), s.Enabled(features.APIListChunking), s.Has("Blinking"))
	var states []features.State = s.All()
	for _, g := range states {
		if g.On != g.Default {
			fmt.Println(g.Name, g.Stage, g.On)
		}
	}
	for _, line := range s.Help() {
		fmt.Println(line)
	}
	_, err = features.New("1.34", map[string]bool{features.AnyVolumeDataSource: false})
	fmt.Println(err)
	// Output:
	// true false true false
	// Blink ALPHA true
	// WatchList BETA false
	// APIResponseCompression=true|false (BETA - default=true)
	// AllAlpha=true|false (ALPHA - default=false)
	// AllBeta=true|false (BETA - default=false)
	// Blink=true|false (ALPHA - default=false)
	// CSIVolumeHealth=true|false (ALPHA - default=false)
	// ContainerStopSignals=true|false (ALPHA - default=false)
	// CoordinatedLeaderElection=true|false (BETA - default=false)
	// CrossNamespaceVolumeDataSource=true|false (ALPHA - default=false)
	// HPAScaleToZero=true|false (ALPHA - default=false)
	// MaxUnavailableStatefulSet=true|false (ALPHA - default=false)
	// WatchList=true|false (BETA - default=true)
	// Features["AnyVolumeDataSource"]: the feature is stable since release 1.33 and cannot be turned off
}

// Gates lists the gates of every server.
func ExampleGates() {
	for _, g := range features.Gates()[:2] {
		fmt.Printf("%s: %s (alpha %s, beta %s, stable %s)\n", g.Name, g.Doc, g.Alpha, g.Beta, g.Stable)
	}
	// Output:
	// APIListChunking: lists in pages, by limit and continue (alpha 1.8, beta 1.9, stable 1.29)
	// APIResponseCompression: long answers are compressed with gzip (alpha 1.8, beta 1.16, stable )
}
