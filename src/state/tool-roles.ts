/** The tools that the state knows by name; a test says that there are such tools. */

/** Tools whose state is the output of their last successful call: it is stored only in the log. */
export const TOOLS_KEPT_IN_LOG: ReadonlySet<string> = new Set(['TaskTracker'])

/** Tools that end the run. */
export const TOOLS_THAT_FINISH: ReadonlySet<string> = new Set(['Finish'])
