/** One request at a time begins a turn of a conversation, whatever protocol it speaks. */
import { Slots } from '../../lib/slots.ts'

const beginning = new Slots({ perKey: 1 })

/** Returns a release function; undefined while another request begins a turn. */
export const beginAlone = (id: string): (() => void) | undefined => beginning.take(id)
