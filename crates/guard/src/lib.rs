//! Size policy, previews and saved results.
