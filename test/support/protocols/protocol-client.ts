/** A client of one protocol, as the stories across protocols need it. It keeps nothing about a conversation between two calls. */

/** How clients address a conversation. */
export type Addressed = {
  readonly id: string
  /** The id that a client has chosen for its thread or chat; otherwise `id`. */
  readonly thread: string
}

export type Verdict = {
  /** The command that the client must be asked about. */
  readonly command: string
  readonly behavior: 'allow' | 'deny'
  /** Why it is denied. Editors cannot say it. */
  readonly reason: string
  /** What the agent says then. */
  readonly answer: string
}

export type QuestionAnswer = {
  /** The option to choose in the only question. */
  readonly label: string
  /** What the agent says then. */
  readonly answer: string
}

export type ProtocolClient = AsyncDisposable & {
  /** Says this in a new conversation. Resolves when the agent waits for a user. */
  readonly begin: (text: string) => Promise<Addressed>
  /** Opens the conversation, decides the one call that waits, and follows the agent to its answer. */
  readonly decide: (conversation: Addressed, verdict: Verdict) => Promise<void>
  /** Opens the conversation, answers the question that waits, and follows the agent to its answer. */
  readonly answer: (conversation: Addressed, answer: QuestionAnswer) => Promise<void>
  /** Opens the conversation and says this. Returns the answer. */
  readonly continueWith: (conversation: Addressed, text: string) => Promise<string>
  /** Opens the conversation. Returns the last text of the agent in it. */
  readonly finalText: (conversation: Addressed) => Promise<string>
}

export type ClientPlace = {
  readonly url: string
  readonly key: string
  /** A directory in which conversations can have theirs. */
  readonly home: string
}
