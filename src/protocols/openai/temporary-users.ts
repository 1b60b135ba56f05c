/** The requests that use each conversation which goes with its answer: the last of them ends it. */
type Use = { count: number; isOver: boolean }

const uses = new Map<string, Use>()

/** Returns what to call once at the end of the request: with true if the conversation is over. It returns true if nobody uses it any more. */
export function enterTemporary(id: string): (isOver: boolean) => boolean {
  const use = uses.get(id) ?? { count: 0, isOver: false }
  uses.set(id, use)
  use.count++
  return (isOver) => {
    use.isOver ||= isOver
    if (--use.count > 0) return false
    uses.delete(id)
    return use.isOver
  }
}
