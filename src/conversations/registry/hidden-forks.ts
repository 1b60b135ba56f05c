/** Forks of replays, also of those that are not made yet: they are in no list, and their ids are for nothing else. */
import { Problem } from '../../contract/problem.ts'
import type { ReplayTable } from '../../storage/instances.ts'
import type { IsVisible } from './listing.ts'

export class HiddenForks {
  readonly #ids = new Set<string>()
  #stored: ReadonlySet<string> = new Set()
  #table: ReplayTable | undefined

  /** Hides the forks of other instances, too. Undefined: there are none. */
  async learn(table: ReplayTable | undefined): Promise<void> {
    this.#table = table
    await this.relearn()
  }

  /** Call it when another instance has created conversations: the ids of forks are stored before that. */
  readonly relearn = async (): Promise<void> => {
    if (this.#table) this.#stored = new Set(await this.#table.forks())
  }

  add(id: string): void {
    this.#ids.add(id)
  }

  delete(id: string): void {
    this.#ids.delete(id)
  }

  has(id: string): boolean {
    return this.#ids.has(id) || this.#stored.has(id)
  }

  /** Returns a filter for lists. To count all is cheap without one. */
  visibleTo(isVisible: IsVisible | undefined): IsVisible | undefined {
    const areNone = this.#ids.size + this.#stored.size === 0
    return areNone ? isVisible : (summary) => !this.has(summary.id) && (isVisible?.(summary) ?? true)
  }

  /**
   * The table of a replay shows the id before its fork exists: without this, a client could put a conversation in its place,
   * which would run the check of the replay and be deleted with it. Throws a `Problem`.
   */
  refuse(id: string | undefined): void {
    if (id !== undefined && this.has(id))
      throw new Problem('conversation_exists', `Conversation ${id} belongs to a replay; use another id.`)
  }
}
