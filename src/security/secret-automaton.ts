/**
 * Finds every written form of many secrets in one pass over a text, one table look-up a character.
 *
 * It is the deterministic automaton of the forms, built only where texts lead: all of it would be as large as the ways
 * to mix escapes are many, and ordinary text visits a few hundred states. A state knows how far back the forms reach
 * that are begun in it, which is what a stream has to hold back.
 */
import type { Form } from './secret-forms.ts'

/** A form that was found: where it begins and ends, in units from the beginning of the text. */
export type Occurrence = { readonly name: string; readonly start: number; readonly end: number }

/** A place in the automaton; of use only with the one it came from. */
export type State = {
  /** Units since the beginning of the oldest form that could still come to its end; 0 when none is begun. */
  readonly reach: number
}

/** A form that is begun: the next place, what is read of that place so far, and the units since its beginning. */
type Thread = { readonly form: number; readonly place: number; readonly read: string; readonly age: number }

/** What ends here; of several, the longest covers the others. */
type Hit = { readonly name: string; readonly length: number }

type Node = State & { id: number; round: number; readonly threads: readonly Thread[]; readonly hit: Hit | undefined }

/** Units that the table has columns for; few secrets have others. */
const COLUMNS = 128
const FIRST_ROWS = 64
/** A quarter of a kibibyte each. A text that needs more makes the automaton forget and begin anew. */
const MAX_NODES = 2048
const FIRST_ID = 1

export class SecretAutomaton {
  readonly root: State
  readonly #forms: readonly Form[]
  /** By the first unit of their first place. */
  readonly #beginnings = new Map<number, number[]>()
  readonly #root: Node
  readonly #nodes = new Map<string, Node>()
  readonly #byId: Node[] = []
  /** Rows by node, columns by unit: the next node's id, doubled, and 1 added when something ends there; 0 is not known yet. */
  #table = new Uint16Array(FIRST_ROWS * COLUMNS)
  readonly #wide = new Map<number, number>()
  readonly #hasWideForms: boolean
  /** Counts how often everything was forgotten: ids are of one round. */
  #round = 0

  constructor(forms: readonly Form[]) {
    this.#forms = forms
    this.#hasWideForms = forms.some(({ isWide }) => isWide)
    forms.forEach((form, index) => {
      for (const unit of new Set(form.waysAt(0).map((way) => way.charCodeAt(0)))) {
        const known = this.#beginnings.get(unit)
        if (known) known.push(index)
        else this.#beginnings.set(unit, [index])
      }
    })
    this.#root = this.#intern([], undefined)
    this.root = this.#root
  }

  /** Reads on from `from` and answers where it stands then; adds what it finds. `offset` is where `text` begins. */
  scan(from: State, text: string, offset: number, found: Occurrence[]): State {
    let id = this.#idOf(from as Node)
    let table = this.#table
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      let next = unit < COLUMNS ? table[id * COLUMNS + unit]! : 0
      if (next === 0) {
        next = this.#learn(id, unit)
        table = this.#table
      }
      id = next >> 1
      if ((next & 1) === 0) continue
      const { name, length } = this.#byId[id]!.hit!
      found.push({ name, start: offset + at + 1 - length, end: offset + at + 1 })
    }
    return this.#byId[id]!
  }

  #idOf(node: Node): number {
    return node.round === this.#round ? node.id : this.#intern(node.threads, node.hit).id
  }

  /** Where `unit` leads from here, as the table has it. */
  #learn(id: number, unit: number): number {
    const isWide = unit >= COLUMNS
    if (isWide && !this.#hasWideForms) return this.#root.id << 1
    const known = isWide ? this.#wide.get(id * 0x10000 + unit) : undefined
    if (known !== undefined) return known
    const round = this.#round
    const next = this.#step(this.#byId[id]!, unit)
    const entry = (next.id << 1) | (next.hit ? 1 : 0)
    if (round !== this.#round) return entry
    if (isWide) this.#wide.set(id * 0x10000 + unit, entry)
    else this.#table[id * COLUMNS + unit] = entry
    return entry
  }

  #step({ threads }: Node, unit: number): Node {
    const character = String.fromCharCode(unit)
    // Forms that are read up to the same place end together, and the oldest of them covers the others.
    const next = new Map<string, Thread>()
    let hit: Hit | undefined

    const advance = ({ form, place, read, age }: Thread) => {
      const { name, length, waysAt } = this.#forms[form]!
      const now = read + character
      for (const way of waysAt(place)) {
        if (!way.startsWith(now)) continue
        if (way.length > now.length) keep({ form, place, read: now, age: age + 1 })
        else if (place + 1 < length) keep({ form, place: place + 1, read: '', age: age + 1 })
        else if (age + 1 > (hit?.length ?? 0)) hit = { name, length: age + 1 }
      }
    }
    const keep = (thread: Thread) => {
      const key = `${thread.form} ${thread.place} ${thread.read}`
      if ((next.get(key)?.age ?? 0) < thread.age) next.set(key, thread)
    }

    for (const thread of threads) advance(thread)
    for (const form of this.#beginnings.get(unit) ?? []) advance({ form, place: 0, read: '', age: 0 })
    return this.#intern([...next.values()], hit)
  }

  #intern(threads: readonly Thread[], hit: Hit | undefined): Node {
    const key = JSON.stringify([hit, ...threads.map(({ form, place, read, age }) => [form, place, read, age])])
    const known = this.#nodes.get(key)
    if (known) return known
    if (this.#nodes.size >= MAX_NODES) this.#forget()
    const id = FIRST_ID + this.#nodes.size
    const node: Node = {
      id,
      round: this.#round,
      threads,
      hit,
      reach: threads.reduce((longest, { age }) => Math.max(longest, age), 0),
    }
    this.#nodes.set(key, node)
    this.#byId[id] = node
    if ((id + 1) * COLUMNS > this.#table.length) this.#growTable()
    return node
  }

  #growTable(): void {
    const larger = new Uint16Array(this.#table.length * 2)
    larger.set(this.#table)
    this.#table = larger
  }

  #forget(): void {
    this.#round++
    this.#nodes.clear()
    this.#byId.length = 0
    this.#wide.clear()
    this.#table = new Uint16Array(FIRST_ROWS * COLUMNS)
    this.#root.round = this.#round
    this.#nodes.set(JSON.stringify([undefined]), this.#root)
    this.#byId[this.#root.id] = this.#root
  }
}
