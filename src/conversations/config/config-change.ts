/** What a request to change the configuration of a conversation leads to. */

/** A change of the configuration: its events, and the work before and after they are stored. */
export type ConfigChange = {
  readonly changes: Record<string, unknown>
  readonly before?: () => Promise<void>
  readonly after?: () => Promise<void>
}
