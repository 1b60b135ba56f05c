/** Writes the events of a conversation to the server's log: `visualize`. */
import { describeEvent } from '../contract/events/describe-event.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Logger } from '../telemetry/logger.ts'
import { oneLine } from '../telemetry/plain-text.ts'

/** Writes each event to the server's log. */
export function logEvents(log: EventLog, logger: Logger): void {
  const conversation_id = log.conversationId
  log.subscribe({
    onEvents: (events) =>
      events.forEach(({ event }) => logger.info({ conversation_id }, oneLine(describeEvent(event)))),
  })
}
