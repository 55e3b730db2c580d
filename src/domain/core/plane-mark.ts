// The mark of the plane (ruling 20): the URI name in the certificates of its node and recovery listeners. A leaf below the same
// roots with another URI name is of a node or of a program, and never of the plane.

export const planeMark = (domain: string): string => `spiffe://${domain}/plane`

/** How a plane says that its certificates carry the mark: in `understands`, in its hello, in join strings and in repair bundles. */
export const markedWord = 'marked'
