package check

// TreeOnly marks facts that come from ZooKeeper's tree alone, without an answer of any broker, why saying how that came.
// The snapshot is the tree's own and its configurations are the stored values. So checks that compare brokers with
// each other or with ZooKeeper cannot run, those that need defaults or server.properties neither; those that look for a
// stored value can.
func TreeOnly(f *Facts, why string) {
	f.Missing = map[Source]string{}
	for _, s := range []Source{FromConfigs, FromLogDirs, FromPositions, FromGroups, FromEnsemble} {
		f.Missing[s] = why
	}
	f.Cannot = map[string]string{}
	for _, id := range []string{
		BrokerUnreachable, ClusterIDMismatch, MixedVersions, LiveBrokersDiffer, StaleMetadata, ControllerMismatch,
		TopicGone, TopicUnknown, TopicIDMismatch, ReplicaOffline,
	} {
		f.Cannot[id] = why
	}
	for _, id := range []string{MinISRAboveReplicas, MinISREqualsReplicas, UncleanElectionOn, TimestampWindow, ThrottleLeft, ThrottleBroken} {
		f.Cannot[id] = ""
	}
}
