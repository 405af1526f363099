#pragma once
// The first GPU, opened: context, libraries, figures. For the worker process, which ends with what it has opened.
#include <map>
#include <string>

#include "engine/runtime/cuda/library.h"

namespace cutaway::cuda {

class Device {
  public:
    /// Errors: no driver, no GPU.
    static Result<Device> open();
    /// Whether this process has opened it.
    static bool isOpen();
    /// Loads cuBLASLt. Error: it is not there.
    Result<void> openProducts();
    /// CudaFound::figures, from PyTorch 2.11's sources: a data sheet where it has the device's name, else clocks and
    /// counts.
    std::map<std::string, double> figures() const;
    Result<int64_t> attribute(int number) const;
    const std::string& name() const { return m_name; }
    const Driver& driver() const { return m_driver; }
    const CublasLt& lt() const { return m_lt; }
    int capability() const { return m_capability; }  // 90

  private:
    Driver m_driver{};
    CublasLt m_lt{};
    int m_device = 0, m_capability = 0;
    std::string m_name;
};

constexpr int kClockRate = 13, kMultiprocessors = 16, kMemoryClockRate = 36, kMemoryBusWidth = 37, kL2CacheSize = 38,
              kCapabilityMajor = 75, kCapabilityMinor = 76;

}  // namespace cutaway::cuda
