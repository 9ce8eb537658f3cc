// Package broker wires a broker together and is the only place that does: configuration, ZooKeeper, storage,
// replica manager, controller, group coordinator, metadata cache, request handlers and listeners.
//
// Start: bind the listeners (a taken port must fail before any data is touched), connect to ZooKeeper and make
// the persistent nodes, learn cluster id and broker id, refuse a live twin, read dynamic configuration, open the
// log directories, start the shells, register /brokers/ids/<id>, accept connections. Ready is closed when the
// metadata cache names this broker and a live controller.
//
// Stop: ask the controller to move leaders away (controlled shutdown), stop accepting and drain, stop the
// shells, close the logs, close the ZooKeeper session. Kill leaves all of that out.
//
// A Broker is used once: New, Run. Other methods may be called from any goroutine.
package broker
