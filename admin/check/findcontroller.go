package check

import (
	"fmt"
	"strings"
	"time"

	"kctl/zkutil/cluster"
)

// officeGrace is how long a new controller may take until its own metadata names it.
const officeGrace = 10 * time.Second

// controllerDenies compares /controller with what the broker that it names says of itself.
func controllerDenies(s *scene, add report) {
	says := s.Denial()
	if len(says) == 0 || s.Office.Changed {
		return
	}
	evidence := fmt.Sprintf("/controller names it, but %s", strings.Join(says, ", and "))
	if s.Office.Persistent {
		evidence += "; the znode belongs to no session, so none that ends removes it"
	}
	id := s.Tree.Controller
	add(objectBroker(id), evidence, fmt.Sprintf("kctl controller move --yes   # if broker %d is named again and denies it, restart it", id))
}

// Denial is how the broker that /controller names for longer than officeGrace denies it; empty when it does not, does not
// answer, or is not registered.
func (f *Facts) Denial() []string {
	if f.Tree == nil || f.Tree.Controller < 0 || !Live(f.Snapshot)[f.Tree.Controller] {
		return nil
	}
	if since := f.Snapshot.Controller.Since; !since.IsZero() && f.Snapshot.At.Sub(since) < officeGrace {
		return nil
	}
	var says []string
	for i := range f.Views {
		if v := &f.Views[i]; v.Broker == f.Tree.Controller && v.Err == "" && v.Controller != v.Broker {
			says = append(says, "its own metadata names "+controllerName(v.Controller))
		}
	}
	if f.Office.Refuses != "" {
		says = append(says, "it answers "+f.Office.Refuses+" to a request for the controller")
	}
	return says
}

func controllerName(id cluster.BrokerID) string {
	if id < 0 {
		return "no controller"
	}
	return objectBroker(id)
}
