/** Records which logs a server opens. */
import type { EventStore } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'

/** Set `home.directory` before the first log is made. `opened`: the ids of the logs that were opened, in their order. */
export function recordOpenedLogs() {
  const opened: string[] = []
  const home = { directory: '' }
  const logs: EventStore = {
    create: (...args) => createJsonlStore(home).create(...args),
    copy: (...args) => createJsonlStore(home).copy(...args),
    open: (id) => (opened.push(id), createJsonlStore(home).open(id)),
    delete: (id) => createJsonlStore(home).delete(id),
  }
  return { opened, home, logs }
}
