// When the revocation lists of programs are so long that a person should look.

/** `list`: the authority whose list it is; null: all lists together. */
export type ListLength = { readonly list: string | null; readonly bytes: number; readonly mostBytes: number }

/** A withdrawal of many nodes can double a list: half of what is left is room for one. */
const longFrom = 1 / 2
const urgentFrom = 4 / 5
/** Lower than where it opens: entries come and go, and an alert must not open and end with each of them. */
const shortBelow = 2 / 5

const shareOf = ({ bytes, mostBytes }: ListLength): number => bytes / mostBytes

export const isListLong = (length: ListLength): boolean => shareOf(length) >= longFrom

export const isListUrgent = (length: ListLength): boolean => shareOf(length) >= urgentFrom

export const isListShort = (length: ListLength): boolean => shareOf(length) < shortBelow
