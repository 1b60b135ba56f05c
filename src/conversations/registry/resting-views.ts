/**
 * Views of conversations that are not open, for lists: read from `meta.json` or a short log, and cached until the
 * conversation changes.
 */
import type { ConversationView } from '../../contract/conversation.ts'
import type { Summary } from '../../storage/storage.ts'
import { damagedState } from './start-up.ts'
import type { State } from '../../state/state.ts'
import { viewOf } from '../../state/view.ts'

/** Bytes of JSON for all cached views: some ten thousand, because one takes about a kilobyte. */
const MAX_KEPT_BYTES = 8 * 1024 * 1024

type KeptView = { readonly view: ConversationView; readonly updatedAt: number; readonly bytes: number }

export class RestingViews {
  readonly #read: (summary: Summary) => Promise<State | undefined>
  readonly #mayBeNewer: boolean
  /** Most recently requested last. */
  readonly #views = new Map<string, KeptView>()
  #bytes = 0

  /** `mayBeNewer`: another instance appends, so that what is read can be newer than the summary. */
  constructor(read: (summary: Summary) => Promise<State | undefined>, { mayBeNewer = false } = {}) {
    this.#read = read
    this.#mayBeNewer = mayBeNewer
  }

  /** Returns undefined if what was read is not current: the log must be opened then. */
  async view(summary: Summary): Promise<ConversationView | undefined> {
    const keptView = this.#views.get(summary.id)
    if (keptView && isOf(keptView.view.last_seq, keptView.updatedAt, summary)) {
      this.#keep(keptView)
      return withStatus(keptView.view, summary)
    }
    const state = await this.#read(summary)
    // The log cannot be read, so this is all there is.
    if (summary.lastSeq === 0) return viewOf(damagedView(state, summary))
    if (state && this.#mayBeNewer && state.lastSeq > summary.lastSeq) return viewOf(state)
    if (!state || !isOf(state.lastSeq, Date.parse(state.updatedAt), summary)) return undefined
    const view = viewOf(state)
    this.#keep({ view, updatedAt: summary.updatedAt, bytes: JSON.stringify(view).length })
    return withStatus(view, summary)
  }

  forget(id: string): void {
    this.#bytes -= this.#views.get(id)?.bytes ?? 0
    this.#views.delete(id)
  }

  #keep(one: KeptView): void {
    this.forget(one.view.id)
    this.#views.set(one.view.id, one)
    this.#bytes += one.bytes
    for (const id of this.#views.keys()) {
      if (this.#bytes <= MAX_KEPT_BYTES) break
      this.forget(id)
    }
  }
}

const isOf = (lastSeq: number, updatedAt: number, summary: Summary) =>
  lastSeq === summary.lastSeq && updatedAt === summary.updatedAt

/** A log that was found to be damaged later has set the status to `error`. */
function withStatus(view: ConversationView, { status }: Summary): ConversationView {
  return view.status === status ? view : { ...view, status }
}

export function damagedView(state: State | undefined, { id, status, createdAt, title }: Summary): State {
  if (state) return { ...state, status }
  const foundState = damagedState(id, new Date(createdAt).toISOString())
  return { ...foundState, status, settings: { ...foundState.settings, title } }
}
