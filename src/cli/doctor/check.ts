/** What one check of `agent-server doctor` has found. */
export type Finding = {
  /** `bad`: agents do not work. `weak`: they work, but less well. */
  readonly state: 'good' | 'weak' | 'bad'
  /** A clause without a full stop. */
  readonly text: string
  /** What to do about it, as a sentence. */
  readonly fix?: string
}

export const good = (text: string): Finding => ({ state: 'good', text })
export const weak = (text: string, fix: string): Finding => ({ state: 'weak', text, fix })
export const bad = (text: string, fix?: string): Finding => ({ state: 'bad', text, ...(fix !== undefined && { fix }) })
